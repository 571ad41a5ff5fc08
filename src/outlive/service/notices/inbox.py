"""The inbox: the notices for a session, each reserved before it is presented.

The reservation (claim) ends with the process that made it. So if the process is killed, another process presents the
notice with the same id. A `presented` notice becomes `acked` when a later event shows that the session got the text.
"""

from __future__ import annotations

from outlive.bundle.lease import Lease, is_held
from outlive.bundle.trace import trace
from outlive.domain.errors import UserError
from outlive.domain.notices.notice import may_be_claimed, told_together
from outlive.domain.value import Value
from outlive.ledger.notices import Notices
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.notices.find_recipients import OwedBy, Recipients

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Self

    from outlive.bundle.home import Home
    from outlive.domain.notices.notice import Notice, Telling
    from outlive.domain.sessions.session import Session
    from outlive.domain.tasks.task import Task
    from outlive.ledger.notices import When

MOST_AT_ONCE = 40
_PAGE = 400


class Peeked(Value):
    """The first notices for a session, and the number of further notices."""

    owed: OwedBy | None
    tellings: tuple[Telling, ...] = ()
    more: int = 0

    @property
    def session(self) -> Session | None:
        """The session of the inbox, or None if it is unknown."""
        return None if self.owed is None else self.owed.session


def owed_to(ledger: SqliteLedger, session: str, project: str) -> OwedBy | None:
    """Return a session with the tasks whose end is reported to it.

    Returns None if the session is unknown.
    """
    me = Sessions(ledger).find(session, project)
    return None if me is None else Recipients(ledger).owed_to(me)


def running_for(ledger: SqliteLedger, owed: OwedBy) -> list[Task]:
    """Return the running tasks of a session and of ended sessions that it replaces."""
    return ledger.running_of(owed.origins)


def awaited_by(ledger: SqliteLedger, owed: OwedBy) -> list[Task]:
    """Return the running tasks whose end will be reported to a session.

    Tasks of other sessions that a hand-off showed to the session are included.
    """
    return ledger.running_of(owed.origins, owed.tasks)


class Claim:
    """Notices that this process has reserved in order to present them.

    When they are released, notices that were not presented return to their former state.
    """

    def __init__(
        self, home: Home, owed: OwedBy | None, tellings: Sequence[Telling], lease: Lease | None, more: int = 0
    ) -> None:
        self._home = home
        self._lease = lease
        self.owed = owed
        self.tellings = tellings
        self.more = more
        """The number of further notices that could be presented now."""
        self._open = [notice for telling in tellings for notice in telling.all]

    def presented(
        self, told: Sequence[Telling] | None = None, also: Callable[[SqliteLedger], None] | None = None
    ) -> None:
        """Record that the notices `told` were presented.

        Without `told`, all reserved notices are recorded as presented. The function `also` is called in the same
        transaction.
        """
        notices = [notice for telling in (self.tellings if told is None else told) for notice in telling.all]
        if self.owed is None or not (notices or also):
            return
        with SqliteLedger(self._home.ledger, utc_now()) as ledger, ledger.write():
            if self._lease is not None:
                Notices(ledger).present(notices, self._lease.name, self.owed.session.seq, utc_now())
            if also is not None:
                also(ledger)
        self._trace("presented", notices)
        self._open = [notice for notice in self._open if notice not in notices]

    def acknowledged(self) -> None:
        """Record that the session has received all reserved notices."""
        with SqliteLedger(self._home.ledger, utc_now()) as ledger:
            Notices(ledger).acknowledge([n for telling in self.tellings for n in telling.all], utc_now())
        self._trace("acknowledged", self._open)
        self._open = []

    def release(self, error: str | None = None) -> None:
        """Let other processes present the notices that this process did not present."""
        if self._lease is None:
            return
        if self._open:
            with SqliteLedger(self._home.ledger, utc_now()) as ledger:
                Notices(ledger).release(self._open, self._lease.name, error)
            self._trace("released", self._open, error=error)
            self._open = []
        self._lease.let_go()
        self._lease = None

    def _trace(self, decision: str, notices: Sequence[Notice], **why: object) -> None:
        if self.owed is not None:
            for notice in notices:
                trace(self._home, self.owed.session.id, decision, notice=notice.id, **why)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        # A GeneratorExit is not a failure. It means that the caller has closed the generator that yields the notices.
        is_failure = error is not None and not isinstance(error, GeneratorExit)
        self.release(f"{type(error).__name__}: {error}" if is_failure else None)


def claim(
    home: Home,
    session: str,
    project: str,
    *,
    at_boundary: bool = False,
    is_turn: bool = False,
    wanted: Callable[[SqliteLedger, Telling], bool] | None = None,
) -> Claim:
    """Reserve the notices for a session that no other process has reserved.

    With `is_turn`, notices that were presented earlier are acknowledged, because a later turn shows that the session
    got these notices. With `at_boundary`, notices that were presented and not acknowledged are reserved again. A
    notice for which `wanted` returns False stays in the inbox. A quiet notice, which must not wake the session, is
    reserved only together with another notice.
    """
    lease = Lease(home)
    try:
        with SqliteLedger(home.ledger, utc_now()) as ledger, ledger.write():
            owed = owed_to(ledger, session, project)
            tellings: list[Telling] = []
            more = 0
            if owed is not None:
                inbox = Notices(ledger)
                if is_turn:
                    _confirm(home, ledger, owed.session)
                tellings = _ready(home, ledger, owed, at_boundary=at_boundary, wanted=wanted)
                inbox.claim([notice for telling in tellings for notice in telling.all], lease.name)
                more = count_more(ledger, owed, tellings, "boundary" if at_boundary else "now")
    except BaseException:
        lease.let_go()
        raise
    if not tellings:
        lease.let_go()
        return Claim(home, owed, (), None)
    for telling in tellings:
        trace(home, session, "claimed", notice=telling.notice.id, covers=[each.id for each in telling.covers])
    return Claim(home, owed, tellings, lease, more)


def _ready(
    home: Home,
    ledger: SqliteLedger,
    owed: OwedBy,
    *,
    at_boundary: bool,
    wanted: Callable[[SqliteLedger, Telling], bool] | None,
) -> list[Telling]:
    """Return the first notices for a session that can be presented now.

    A notice is left out if `wanted` returns False. A quiet notice, which must not wake the session, is included only
    together with another notice. The notices are read in pages.
    """
    inbox, session = Notices(ledger), owed.session.id
    found: list[Telling] = []
    quiet: list[Telling] = []
    for notices in _pages(inbox, owed, "boundary" if at_boundary else "now"):
        ready = [each for each in notices if _is_ready(home, session, each, at_boundary=at_boundary)]
        for each in told_together(ready, inbox.members_of):
            if wanted is None or wanted(ledger, each):
                found.append(each)
            elif each.is_quiet:
                quiet.append(each)
            else:
                trace(home, session, "deferred", notice=each.notice.id, why="other tasks of its group still run")
        if len(found) >= MOST_AT_ONCE:
            break
    if not found:
        return []
    return sorted(found + quiet, key=lambda telling: telling.notice.seq)[:MOST_AT_ONCE]


def _pages(inbox: Notices, owed: OwedBy, when: When) -> Iterator[list[Notice]]:
    """Yield pages of a session's notices.

    The notice about the end of a group is on the same page as the notices of its members.
    """
    ends = inbox.owed(owed.origins, owed.tasks, when=when, kind="group_ended", limit=MOST_AT_ONCE)
    taken = {each.id: each for end in ends for each in (*inbox.parts_of(end, owed.origins, owed.tasks, when), end)}
    extra, after = list(taken.values()), 0
    while notices := inbox.owed(owed.origins, owed.tasks, when=when, after=after, limit=_PAGE):
        after = notices[-1].seq
        yield sorted([*extra, *(each for each in notices if each.id not in taken)], key=lambda each: each.seq)
        extra = []
        if len(notices) < _PAGE:
            return


def count_more(ledger: SqliteLedger, owed: OwedBy, tellings: Sequence[Telling], when: When) -> int:
    """Return how many notices for a session are not in `tellings`."""
    counts = Notices(ledger).count(owed.origins, owed.tasks, when)
    return sum(counts.values()) - sum(len(telling.all) for telling in tellings)


def confirm(home: Home, session: str, project: str) -> None:
    """Acknowledge the notices that were presented to a session before.

    Call this function only for a call that shows that the session has got these notices.
    """
    with SqliteLedger(home.ledger, utc_now()) as ledger, ledger.write():
        me = Sessions(ledger).find(session, project)
        if me is not None:
            _confirm(home, ledger, me)


def confirm_at_end(home: Home, session: str, project: str) -> None:
    """Acknowledge the presented notices of a session whose client reports its end.

    If the session did nothing after its last boundary, the notices of its hand-off stay open. Its model may not have
    read the hand-off.
    """
    with SqliteLedger(home.ledger, utc_now()) as ledger, ledger.write():
        me = Sessions(ledger).find(session, project)
        if me is not None and me.begun_tick is None:
            _confirm(home, ledger, me)


def _confirm(home: Home, ledger: SqliteLedger, session: Session) -> None:
    for name in Notices(ledger).confirm(session.seq, utc_now()):
        trace(home, session.id, "acknowledged", notice=name, by="a later turn")
    Sessions(ledger).has_acted(session.seq)


def peek(home: Home, session: str, project: str) -> Peeked:
    """Return a session's notices without changing them.

    Notices that another process is about to present are included.
    """
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        owed = owed_to(ledger, session, project)
        if owed is None:
            return Peeked(owed=None)
        tellings = tellings_for(ledger, owed)
        return Peeked(owed=owed, tellings=tuple(tellings), more=count_more(ledger, owed, tellings, "ever"))


def tellings_for(ledger: SqliteLedger, owed: OwedBy, when: When = "ever") -> list[Telling]:
    """Return the first notices for a session, combined as they would be presented."""
    inbox = Notices(ledger)
    first = next(_pages(inbox, owed, when), [])
    return told_together(first, inbox.members_of)[:MOST_AT_ONCE]


def acknowledge(home: Home, names: Sequence[str], session: str | None, project: str) -> list[str]:
    """Acknowledge notices for all their recipients.

    Raises `UserError` if the session may not acknowledge one of the notices (see `Recipients.may_acknowledge`).
    """
    if session is None:
        raise UserError(
            "only a session can acknowledge a notice, and no session is named",
            "give --session ID, or close the notice with `outlive dismiss`",
        )
    with SqliteLedger(home.ledger, utc_now()) as ledger, ledger.write():
        me = Sessions(ledger).find(session, project)
        notices = [_named(ledger, name) for name in names]
        for notice in notices:
            if me is None or not _may_acknowledge(ledger, me, notice.task, notice.origin):
                raise UserError(
                    f"session {session} cannot acknowledge notice {notice.id}, which is for another session",
                    "`outlive dismiss` closes the notice for all sessions",
                )
        done = Notices(ledger).acknowledge(notices, utc_now())
    for closed in done:
        trace(home, session, "acknowledged", notice=closed, by="its id")
    return done


def dismiss(home: Home, names: Sequence[str], session: str | None, project: str) -> list[str]:
    """Dismiss notices, so that no session gets them any more.

    A session may dismiss the notices of its own project. A person (`session` is None) may dismiss every notice.
    """
    with SqliteLedger(home.ledger, utc_now()) as ledger, ledger.write():
        notices = [_named(ledger, name) for name in names]
        for notice in notices if session is not None else ():
            origin = Sessions(ledger).get(notice.origin) if notice.origin else None
            if origin is not None and origin.project != project:
                raise UserError(
                    f"notice {notice.id} belongs to another project: {origin.project}",
                    "dismiss the notice in that project, or outside of a session",
                )
        done = Notices(ledger).dismiss(notices, utc_now())
    for name in done:
        trace(home, session, "dismissed", notice=name)
    return done


def result_was_read(home: Home, task: Task, session: str | None, project: str) -> None:
    """Acknowledge a task's notices after a session has read the task's result.

    The notices stay unchanged if the session may not acknowledge them.
    """
    if session is None or task.launch.session is None:
        return
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        me, origin = Sessions(ledger).find(session, project), Notices(ledger).origin_of(task.id)
        launched_by = None if origin is None else origin.session
        may_close = me is not None and _may_acknowledge(ledger, me, task.id, launched_by)
        closed = Notices(ledger).read(task.id, utc_now()) if may_close else []
    for notice in closed:
        trace(home, session, "acknowledged", notice=notice, by="reading the result")


def _may_acknowledge(ledger: SqliteLedger, session: Session, task: str, origin: int | None) -> bool:
    return origin is not None and Recipients(ledger).may_acknowledge(session, task, origin)


def _is_ready(home: Home, session: str, notice: Notice, *, at_boundary: bool) -> bool:
    is_ready = may_be_claimed(notice, at_boundary=at_boundary, is_held=lambda name: is_held(home, name))
    if not is_ready:
        trace(home, session, "left alone", notice=notice.id, state=notice.state, tries=notice.tries)
    return is_ready


def _named(ledger: SqliteLedger, name: str) -> Notice:
    found = Notices(ledger).find(name) if name.isascii() and name.isalnum() else []
    if len(found) > 1 and found[0].id != name:
        raise UserError(f"{name} may be {found[0].id} or {found[1].id}", "give more letters of the id")
    if not found:
        raise UserError(f"there is no notice {name[:60]!r}", "`outlive inbox --peek` shows the notices")
    return found[0]

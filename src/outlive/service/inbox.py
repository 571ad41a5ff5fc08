"""The inbox: what a session is owed, claimed by one teller at a time, told once.

Whoever tells claims first, in the name of a lease that its death ends. What was put before the
session is presented; it is acknowledged when the session shows that it got it. Killed in between,
a teller leaves the notice to the next one, which tells it again under the same id.
"""

from __future__ import annotations

from outlive.bundle.lease import Lease, is_held
from outlive.bundle.trace import trace
from outlive.domain.errors import UserError
from outlive.domain.notice import may_be_claimed, told_together
from outlive.domain.session import told_through
from outlive.domain.value import Value
from outlive.ledger.inbox import Inbox
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.liveness import is_over

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from outlive.bundle.home import Home
    from outlive.domain.notice import Notice, Telling
    from outlive.domain.session import Session
    from outlive.domain.task import Task

MOST_AT_ONCE = 40


class Owed(Value):
    """A session, and the sessions whose endings it is told."""

    session: Session
    origins: tuple[int, ...]


def owed_to(ledger: SqliteLedger, session: str, project: str) -> Owed | None:
    """Whose endings a session is told; None if it was never heard of.

    One that is over is told only what nobody is told who lives.
    """
    me = Sessions(ledger).find(session, project)
    if me is None:
        return None
    lineage = Sessions(ledger).lineage(me.lineage)
    living = {seq for seq, each in lineage.sessions.items() if not is_over(each)}
    return Owed(session=me, origins=tuple(told_through(me.seq, lineage, lambda each: each.seq in living)))


def running_for(ledger: SqliteLedger, owed: Owed) -> list[Task]:
    """The tasks whose endings it will be told, and that have not ended."""
    found = ((task, Inbox(ledger).origin_of(task.id)) for task in ledger.unsettled())
    return [task for task, origin in found if origin is not None and origin.session in owed.origins]


class Claim:
    """Notices that we are about to tell; let go without a word, they are as they were."""

    def __init__(self, home: Home, owed: Owed | None, tellings: Sequence[Telling], lease: Lease | None) -> None:
        self._home = home
        self._lease = lease
        self.owed = owed
        self.tellings = tellings
        self._open = [notice for telling in tellings for notice in telling.all]

    def presented(
        self, told: Sequence[Telling] | None = None, also: Callable[[SqliteLedger], None] | None = None
    ) -> None:
        """All of them, or these, have been put before the session; `also` becomes true in the same moment."""
        notices = [notice for telling in (self.tellings if told is None else told) for notice in telling.all]
        if self.owed is None or not (notices or also):
            return
        with SqliteLedger(self._home.ledger, utc_now()) as ledger, ledger.write():
            if self._lease is not None:
                Inbox(ledger).present(notices, self._lease.name, self.owed.session.seq, utc_now())
            if also is not None:
                also(ledger)
        self._trace("presented", notices)
        self._open = [notice for notice in self._open if notice not in notices]

    def acknowledged(self) -> None:
        """They were received, beyond doubt."""
        with SqliteLedger(self._home.ledger, utc_now()) as ledger:
            Inbox(ledger).acknowledge([n for telling in self.tellings for n in telling.all], utc_now())
        self._trace("acknowledged", self._open)
        self._open = []

    def release(self, error: str | None = None) -> None:
        """Those that were not presented can be told by somebody else."""
        if self._lease is None:
            return
        if self._open:
            with SqliteLedger(self._home.ledger, utc_now()) as ledger:
                Inbox(ledger).release(self._open, self._lease.name, error)
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
        # Who follows and has had enough closes us in the middle: that is no failure.
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
    """Claim what a session is owed and nobody else is telling it.

    A later turn of the session shows that it got what was presented to it before; at a boundary
    that is told again instead. `wanted` may leave some for later.
    """
    lease = Lease(home)
    try:
        with SqliteLedger(home.ledger, utc_now()) as ledger, ledger.write():
            owed = owed_to(ledger, session, project)
            tellings: list[Telling] = []
            if owed is not None:
                inbox = Inbox(ledger)
                notices = inbox.owed(owed.origins)
                if is_turn:
                    confirmed = inbox.confirm(notices, owed.session.seq, utc_now())
                    for name in confirmed:
                        trace(home, session, "acknowledged", notice=name, by="a later turn")
                    notices = [notice for notice in notices if notice.id not in confirmed]
                    Sessions(ledger).has_acted(owed.session.seq)
                ready = [n for n in notices if _is_ready(home, session, n, at_boundary=at_boundary)]
                tellings = [
                    each
                    for each in told_together(ready, inbox.members_of)
                    if wanted is None or wanted(ledger, each) or _trace_deferred(home, session, each)
                ][:MOST_AT_ONCE]
                inbox.claim([notice for telling in tellings for notice in telling.all], lease.name)
    except BaseException:
        lease.let_go()
        raise
    if not tellings:
        lease.let_go()
        return Claim(home, owed, (), None)
    for telling in tellings:
        trace(home, session, "claimed", notice=telling.notice.id, covers=[each.id for each in telling.covers])
    return Claim(home, owed, tellings, lease)


def peek(home: Home, session: str, project: str) -> tuple[Owed | None, list[Telling]]:
    """What a session is owed, whoever may be telling it; nothing is changed."""
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        owed = owed_to(ledger, session, project)
        return owed, [] if owed is None else tellings_for(ledger, owed)


def tellings_for(ledger: SqliteLedger, owed: Owed) -> list[Telling]:
    """All that a session is owed, as it would be told."""
    inbox = Inbox(ledger)
    return told_together(inbox.owed(owed.origins), inbox.members_of)


def acknowledge(home: Home, names: Sequence[str], session: str | None, project: str) -> list[str]:
    """The session has got these notices; only a session of the lineage that they are owed to may say so."""
    if session is None:
        raise UserError(
            "only the session that a notice is owed to can acknowledge it, and this is none",
            "give --session ID, or use `outlive dismiss`",
        )
    with SqliteLedger(home.ledger, utc_now()) as ledger, ledger.write():
        me = Sessions(ledger).find(session, project)
        notices = [_named(ledger, name) for name in names]
        for notice in notices:
            if me is None or Inbox(ledger).lineage_of(notice.id) != me.lineage:
                raise UserError(
                    f"notice {notice.id} is not owed to session {session} or one that it continues",
                    "`outlive dismiss` closes it for everybody",
                )
        done = Inbox(ledger).acknowledge(notices, utc_now())
    for closed in done:
        trace(home, session, "acknowledged", notice=closed, by="its id")
    return done


def dismiss(home: Home, names: Sequence[str], session: str | None, project: str) -> list[str]:
    """Nobody needs to be told of these any more; a session may say so of those of its project, a person of all."""
    with SqliteLedger(home.ledger, utc_now()) as ledger, ledger.write():
        notices = [_named(ledger, name) for name in names]
        for notice in notices if session is not None else ():
            origin = Sessions(ledger).get(notice.origin) if notice.origin else None
            if origin is not None and origin.project != project:
                raise UserError(
                    f"notice {notice.id} is of another project: {origin.project}", "only a person can dismiss it here"
                )
        done = Inbox(ledger).dismiss(notices, utc_now())
    for name in done:
        trace(home, session, "dismissed", notice=name)
    return done


def result_was_read(home: Home, task: Task, session: str | None, project: str) -> None:
    """Reading a result inside a session of the task's lineage withdraws its notices."""
    if session is None or task.launch.session is None:
        return
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        me = Sessions(ledger).find(session, project)
        closed = Inbox(ledger).read(task.id, me.lineage, utc_now()) if me is not None else []
    for notice in closed:
        trace(home, session, "acknowledged", notice=notice, by="reading the result")


def _is_ready(home: Home, session: str, notice: Notice, *, at_boundary: bool) -> bool:
    is_ready = may_be_claimed(notice, at_boundary=at_boundary, is_held=lambda name: is_held(home, name))
    if not is_ready:
        trace(home, session, "left alone", notice=notice.id, state=notice.state, tries=notice.tries)
    return is_ready


def _trace_deferred(home: Home, session: str, telling: Telling) -> bool:
    trace(home, session, "deferred", notice=telling.notice.id, why="others of its group go on")
    return False


def _named(ledger: SqliteLedger, name: str) -> Notice:
    found = Inbox(ledger).find(name) if name.isascii() and name.isalnum() else []
    if len(found) > 1 and found[0].id != name:
        raise UserError(f"{name} may be {found[0].id} or {found[1].id}", "give more letters of the notice")
    if not found:
        raise UserError(f"there is no notice {name[:60]!r}", "`outlive inbox --peek` shows them")
    return found[0]

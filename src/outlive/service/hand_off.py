"""The hand-off: what a session is told at a boundary of what runs, ended unseen, or was lost."""

from __future__ import annotations

from outlive.domain.digest import Digest, Line, named_in, write_digest
from outlive.domain.session import told_of
from outlive.domain.value import Value
from outlive.ledger.inbox import Inbox
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.drift import World, drift_document
from outlive.service.effects import effects_of, may_open_window, open_windows, window_document
from outlive.service.foreign import foreign_document, foreign_of
from outlive.service.holding import may_hold
from outlive.service.liveness import is_over
from outlive.service.telling import new_mark
from outlive.service.view import last_line, task_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive.bundle.home import Home
    from outlive.domain.notice import Notice, Telling
    from outlive.domain.session import Session
    from outlive.service.inbox import Owed

# Of what other sessions left behind, the newest are enough: there is a command for the rest.
_MOST_EARLIER = 200
# Each is compared with the world, for which somebody waits.
_MOST_COMPARED = 8
_ENDINGS = ("ended", "lost", "group_ended")


class HandOff(Value):
    """A hand-off, and which of the notices it tells."""

    digest: Digest
    text: str
    told: tuple[Telling, ...]


def hand_off(home: Home, owed: Owed, tellings: Sequence[Telling]) -> HandOff:
    """The digest for a session, given the notices that it is about to be told."""
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        digest = _digest(home, ledger, owed, tellings)
    digest = _compared(home, digest)  # it may take a moment and start git, and so not with the ledger open
    named = named_in(digest)
    return HandOff(
        digest=digest,
        text=write_digest(digest, new_mark(), utc_now()),
        told=tuple(each for each in tellings if all(_is_said(notice, digest, named) for notice in each.all)),
    )


def _is_said(notice: Notice, digest: Digest, named: Sequence[str]) -> bool:
    """Whether the digest says how that very attempt ended: a later one may run, or have ended otherwise."""
    newest = {line.task.id: line.task.current.number for line in (*digest.ended, *digest.lost)}
    return notice.kind in _ENDINGS and notice.task in named and newest.get(notice.task) == notice.attempt


def hand_off_document(home: Home, handed: HandOff) -> dict[str, object]:
    """The hand-off as JSON."""
    now = utc_now()
    digest = handed.digest
    parts = {"running": digest.running, "ended": digest.ended, "lost": digest.lost}
    return {
        **{
            name: [
                {
                    "earlier_session": line.earlier,
                    **task_document(home, line.task, now),
                    "drift": drift_document(line.drift),
                }
                for line in lines
            ]
            for name, lines in parts.items()
        },
        "elsewhere": digest.elsewhere,
        "foreign": [foreign_document(one) for one in digest.foreign],
        "open_windows": [{"task": task, **window_document(window, now)} for task, window in digest.windows],
        "text": handed.text,
    }


def _digest(home: Home, ledger: SqliteLedger, owed: Owed, tellings: Sequence[Telling]) -> Digest:
    forsaken = _Forsaken(ledger, owed.session)
    ids = dict.fromkeys(notice.task for each in tellings for notice in each.all)
    ended = [Line(task=task) for one in ids if (task := ledger.task(one)) and task.current.settled_at is not None]
    earlier = dict.fromkeys(
        notice.task for notice in Inbox(ledger).owed_in(owed.session.project, forsaken.are_so(), _MOST_EARLIER)
    )
    ended += [
        Line(task=task, earlier=True)
        for one in earlier
        if one not in ids and (task := ledger.task(one)) and task.current.settled_at is not None
    ]
    running, elsewhere = [], []
    for task in ledger.unsettled():
        origin = Inbox(ledger).origin_of(task.id)
        is_own = origin is not None and origin.session in owed.origins
        if not is_own and task.launch.project != owed.session.project:
            continue
        line = Line(task=task, takes_away=may_open_window(task))
        if is_own or (origin is not None and forsaken.is_so(origin.session)):
            running.append(line.but(last_line=last_line(home, task), earlier=not is_own))
        else:
            elsewhere.append(line)
    return Digest(
        running=tuple(running),
        ended=tuple(line for line in ended if line.task.state != "lost"),
        lost=tuple(line for line in ended if line.task.state == "lost"),
        elsewhere=len(elsewhere),
        beside=tuple(line for line in elsewhere if line.takes_away or line.task.launch.touches),
        foreign=tuple(foreign_of(ledger, [Sessions(ledger).get(origin) for origin in owed.origins])),
        tree=owed.session.project,
        windows=tuple(open_windows(home, [*(line.task for line in ended), *may_hold(ledger)], owed.session.project)),
    )


def _compared(home: Home, digest: Digest) -> Digest:
    """With what the first of its endings touched, and what moved since."""
    world, ended = World(), list(digest.ended)
    for number, line in enumerate(ended[:_MOST_COMPARED]):
        world.wait_for(home, line.task, line.task.current.number)
        effects = effects_of(home, line.task)
        drift = world.drift_of(home, line.task, line.task.current.number, effects)
        ended[number] = line.but(drift=drift, effects=effects)
    return digest.but(ended=tuple(ended))


class _Forsaken:
    """Which sessions of a project are over without anybody in their place."""

    def __init__(self, ledger: SqliteLedger, me: Session) -> None:
        self._sessions, self._inbox = Sessions(ledger), Inbox(ledger)
        self._me = me
        self._known: dict[int, bool] = {}

    def are_so(self) -> list[int]:
        """Those of them that are owed anything."""
        return [seq for seq in self._inbox.origins_in(self._me.project) if self.is_so(seq)]

    def is_so(self, seq: int) -> bool:
        if seq not in self._known:
            session = self._sessions.get(seq)
            self._known[seq] = (
                session.project == self._me.project
                and session.lineage != self._me.lineage
                and told_of(seq, self._sessions.lineage(session.lineage), lambda each: not is_over(each)) is None
            )
        return self._known[seq]

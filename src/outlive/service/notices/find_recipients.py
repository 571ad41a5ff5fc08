"""Recipients: the sessions that are notified of an ending.

This module applies the rule of `domain.notices.recipients` to the ledger's sessions and their clients' processes.
"""

from __future__ import annotations

from outlive.domain.notices.recipients import is_recipient, living_heir, recipients
from outlive.domain.value import Value
from outlive.ledger.notices import Notices
from outlive.ledger.sessions import Sessions
from outlive.service.sessions.liveness import is_over

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.domain.sessions.session import Lineage, Session
    from outlive.ledger.sqlite import SqliteLedger


class OwedBy(Value):
    """A session, and the tasks whose endings are reported to it.

    `origins` names the sessions that launched such tasks. `tasks` names single tasks.
    """

    session: Session
    origins: tuple[int, ...]
    """The sessions whose tasks' endings are reported to `session`.

    These are `session` itself, and ended sessions in whose place `session` is notified.
    """
    tasks: tuple[str, ...] = ()
    """Tasks of other sessions that a hand-off showed to `session` as running.

    The endings of these tasks are reported to `session` too.
    """
    ahead: tuple[Session, ...] = ()
    """Living sessions that are notified in place of `session`. When such a session ends, `session` may replace it."""
    may_grow: bool = False
    """Whether `session` would be notified of further tasks if a session in `ahead` ended."""

    @property
    def may_inherit(self) -> bool:
        """Whether `session` may get further notices when another session's process ends.

        Only processes of sessions in `ahead` count, because only these processes can be watched.
        """
        return self.may_grow and any(each.process is not None for each in self.ahead)


class Recipients:
    """The rule that decides which sessions are notified of an ending.

    The process of each session is checked only once, and the result is kept.
    """

    def __init__(self, ledger: SqliteLedger) -> None:
        self._sessions, self._inbox = Sessions(ledger), Notices(ledger)
        self._lineages: dict[int, Lineage] = {}
        self._lives: dict[int, bool] = {}

    def lineage_of(self, session: int) -> Lineage:
        """Return the lineage of a session."""
        if session not in self._lineages:
            lineage = self._sessions.lineage(self._sessions.get(session).lineage)
            self._lineages.update(dict.fromkeys(lineage.sessions, lineage))
        return self._lineages[session]

    def lives(self, session: Session) -> bool:
        """Return whether a session is alive.

        A session whose process cannot be seen counts as alive.
        """
        if session.seq not in self._lives:
            self._lives[session.seq] = not is_over(session)
        return self._lives[session.seq]

    def heir_of(self, session: int) -> int | None:
        """Return the living session that gets the notices of a session.

        This is the session itself while it is alive, and otherwise a living session that continues it. Returns None if
        there is no such session.
        """
        return living_heir(session, self.lineage_of(session), self.lives)

    def heirs_of_shown(self, task: str) -> list[int]:
        """Return the living sessions to which a hand-off showed a task.

        A session that has ended is replaced by the living session that continues it, if there is one.
        """
        found = (self.heir_of(one) for one in self._inbox.sessions_shown(task))
        return [one for one in found if one is not None]

    def of_session(self, origin: int) -> tuple[int, ...]:
        """Return the sessions that are notified of the endings of a session's tasks.

        Sessions to which a hand-off showed a task are not included.
        """
        return recipients(origin, (), self.lineage_of, self.lives)

    def has_nobody(self, origin: int, me: Session) -> bool:
        """Return whether no living session is notified of the endings of session `origin`.

        Returns False if `origin` is of another project or of the lineage of `me`.
        """
        lineage = self.lineage_of(origin)
        return (
            me.seq not in lineage.sessions
            and lineage.sessions[origin].project == me.project
            and not self.of_session(origin)
        )

    def of_task(self, task: str, origin: int) -> tuple[int, ...]:
        """Return the sessions that are notified of the ending of a task."""
        return recipients(origin, self._shown(task), self.lineage_of, self.lives)

    def may_acknowledge(self, session: Session, task: str, origin: int) -> bool:
        """Return whether a session may acknowledge a task's ending for all recipients.

        The recipients and all sessions of the launcher's lineage may acknowledge the ending. If there is no recipient,
        every session of the project may acknowledge it.
        """
        lineage = self.lineage_of(origin)
        if session.seq in lineage.sessions or self._hears(session, task, origin):
            return True
        return session.project == lineage.sessions[origin].project and not self.of_task(task, origin)

    def owed_to(self, me: Session) -> OwedBy:
        """Return a session with the tasks whose endings are reported to it.

        A session that has ended is notified only of endings that have no living recipient.
        """
        kin = self.lineage_of(me.seq).sessions
        candidates = [*kin, *self._sessions.descendants(kin)]
        origins = [one for one in candidates if is_recipient(me.seq, one, (), self.lineage_of, self.lives)]
        shown = [(task, origin) for task, origin in self._inbox.tasks_shown_to(kin) if origin not in candidates]
        tasks = [task for task, origin in shown if self._hears(me, task, origin)]
        others = [one for one in candidates if one not in origins]
        return OwedBy(
            session=me,
            origins=tuple(origins),
            tasks=tuple(tasks),
            ahead=tuple(
                session
                for lineage in {id(each): each for each in self._lineages.values()}.values()
                for session in lineage.sessions.values()
                if session.seq != me.seq and self._lives.get(session.seq)
            ),
            may_grow=len(tasks) < len(shown) or (bool(others) and self._sessions.are_busy(others)),
        )

    def _hears(self, session: Session, task: str, origin: int) -> bool:
        return is_recipient(session.seq, origin, self._shown(task), self.lineage_of, self.lives)

    def _shown(self, task: str) -> list[int]:
        """Return the sessions to which a task was shown.

        The sessions to which a hand-off showed the task as running come first. Then come the sessions to which open
        notices of the task were presented.
        """
        return [*self._inbox.sessions_shown(task), *self._inbox.last_told(task)]

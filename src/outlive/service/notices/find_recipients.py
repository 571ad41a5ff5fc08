"""Recipients: the sessions that are notified of a task's end.

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
    """A session, and the tasks whose end is reported to it.

    `origins` names sessions: the end of all their tasks is reported. `tasks` names single tasks.
    """

    session: Session
    origins: tuple[int, ...]
    """The sessions whose tasks are reported to `session` when they end.

    These are `session` itself, and ended sessions that it replaces.
    """
    tasks: tuple[str, ...] = ()
    """Tasks of other sessions that a hand-off showed to `session` while they ran.

    The end of these tasks is reported to `session` too.
    """
    ahead: tuple[Session, ...] = ()
    """Living sessions that get notices in place of `session`.

    When such a session ends, its notices may go to `session`.
    """
    may_grow: bool = False
    """Whether the end of a session in `ahead` would bring `session` further tasks.

    `session` would be notified of the end of these tasks.
    """

    @property
    def may_inherit(self) -> bool:
        """Whether `session` may get the notices of another session whose process ends.

        Only the sessions in `ahead` count, because only their processes can be watched.
        """
        return self.may_grow and any(each.process is not None for each in self.ahead)


class Recipients:
    """The rule that decides which sessions are notified of a task's end.

    The process of each session is checked only once, and the result is kept.
    """

    def __init__(self, ledger: SqliteLedger) -> None:
        self._sessions, self._inbox = Sessions(ledger), Notices(ledger)
        self._lineages: dict[int, Lineage] = {}
        self._lives: dict[int, bool] = {}

    def lineage_of(self, session: int) -> Lineage:
        """Return the sessions that continue each other, among them the given session."""
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

        If such a session has ended, the living session that continues it takes its place.
        """
        found = (self.heir_of(one) for one in self._inbox.sessions_shown(task))
        return [one for one in found if one is not None]

    def of_session(self, origin: int) -> tuple[int, ...]:
        """Return the sessions that are notified when a session's tasks end.

        Sessions to which a hand-off showed a task are not included.
        """
        return recipients(origin, (), self.lineage_of, self.lives)

    def has_nobody(self, origin: int, me: Session) -> bool:
        """Return whether no living session is notified when tasks of `origin` end.

        Returns False if the session `origin` belongs to another project, or if `origin` and the session `me` continue
        one another.
        """
        lineage = self.lineage_of(origin)
        return (
            me.seq not in lineage.sessions
            and lineage.sessions[origin].project == me.project
            and not self.of_session(origin)
        )

    def of_task(self, task: str, origin: int) -> tuple[int, ...]:
        """Return the sessions that are notified of the end of a task."""
        return recipients(origin, self._shown(task), self.lineage_of, self.lives)

    def may_acknowledge(self, session: Session, task: str, origin: int) -> bool:
        """Return whether a session may acknowledge a task's end for all recipients.

        The recipients may acknowledge it, and so may the launching session and all sessions that continue it. If there
        is no recipient, every session of the project may acknowledge it.
        """
        lineage = self.lineage_of(origin)
        if session.seq in lineage.sessions or self._hears(session, task, origin):
            return True
        return session.project == lineage.sessions[origin].project and not self.of_task(task, origin)

    def owed_to(self, me: Session) -> OwedBy:
        """Return a session with the tasks whose end is reported to it.

        An ended session gets only the tasks whose end is reported to no living session.
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

        First come the sessions to which a hand-off showed the running task. Then come the sessions that were presented
        a notice about the task and have not acknowledged it.
        """
        return [*self._inbox.sessions_shown(task), *self._inbox.last_told(task)]

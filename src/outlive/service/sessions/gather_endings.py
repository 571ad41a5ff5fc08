"""The presentation of notices to a session that is about to stop, all together.

Each presentation costs a turn of the model, and clients allow only a few such turns in a row. So notices wait until no
task runs that the session waits for. Notices about tasks that wait for input or make no progress do not wait. With
`is_failure_urgent`, notices about failed and lost tasks do not wait either.
"""

from __future__ import annotations

import time

from outlive.domain.notices.notice import needs_answer
from outlive.service.notices.follow_inbox import Watch, follow
from outlive.service.sessions.awaited_tasks import QUIET_S, awaited, quiet_s, servers_among

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from outlive.bundle.home import Home
    from outlive.domain.notices.notice import Telling
    from outlive.domain.tasks.task import Task
    from outlive.ledger.sqlite import SqliteLedger
    from outlive.service.maintenance.reconcile import Adopter
    from outlive.service.notices.inbox import Claim


class Gathering(Watch):
    """The wait of a session for its tasks, at the end of a turn.

    The session does not wait for servers. The notices of the tasks that end during the wait are presented together.
    """

    def __init__(
        self,
        home: Home,
        session: str,
        project: str,
        *,
        departures: int | None,
        ceiling_s: float,
        ignored: frozenset[str] = frozenset(),
        is_failure_urgent: bool = False,
    ) -> None:
        super().__init__(home, session, project, departures)
        self.servers: dict[str, int] = {}
        """The tasks that were found to be servers, each with a port on which it listens."""
        self.awaited: list[Task] = []
        """The tasks for which the session waited at the last check."""
        self._until = time.monotonic() + ceiling_s
        self._look_for_servers_at = 0.0
        self._ignored = ignored
        self._is_failure_urgent = is_failure_urgent

    @property
    def is_late(self) -> bool:
        """Whether the time limit of the wait has passed."""
        return time.monotonic() >= self._until

    def claims(self, adopter: Adopter | None) -> Iterator[Claim]:
        """Yield groups of reserved notices. Each group is presented at once."""
        yield from follow(self, adopter, while_owed=True)

    def listen(self) -> None:
        """Prepare a check, and find out for which tasks the session still waits."""
        super().listen()
        wanted = [task for task in awaited(self.launched) if task.id not in self._ignored]
        if time.monotonic() >= self._look_for_servers_at:
            self._look_for_servers(wanted)
        self.awaited = [task for task in wanted if task.id not in self.servers]
        if self.is_late or not self.awaited:
            self.is_vain = True

    def _look_for_servers(self, tasks: Sequence[Task]) -> None:
        self.servers.update(servers_among(self.home, tasks))
        left = [QUIET_S - quiet_s(self.home, task) for task in tasks if task.id not in self.servers]
        # The task prints nothing. It listens on no port now, but it may listen later, so check the task again.
        next_look = min((span if span > 0 else QUIET_S for span in left), default=QUIET_S)
        self._look_for_servers_at = time.monotonic() + next_look

    def is_due(self, ledger: SqliteLedger, telling: Telling) -> bool:
        """Return whether a notice should be presented now.

        Before the wait is over, only a notice for which `needs_answer` returns True is presented.
        """
        if self.is_vain:
            return True
        task = ledger.task(telling.notice.task)
        state = None if task is None else task.attempts[telling.notice.attempt - 1].state
        return needs_answer(telling.notice.kind, state, is_failure_urgent=self._is_failure_urgent)

    def patience_ms(self) -> float:
        """Return how long to sleep at most, in milliseconds.

        The sleep ends at the time limit of the wait, or at the next check for servers.
        """
        now = time.monotonic()
        spans = [self._until - now, self._look_for_servers_at - now]
        return min(super().patience_ms(), *(max(0.0, span) * 1000 + 1 for span in spans))

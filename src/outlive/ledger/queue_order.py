"""The queue in the ledger: the attempts that are ahead of a queued attempt."""

from __future__ import annotations

from outlive.domain.tasks.queueing import Holder, Obstacles
from outlive.ledger.sqlite import DRAW_TICKET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.domain.tasks.queueing import Claim
    from outlive.ledger.sqlite import SqliteLedger

# Few attempts are queued or running, and each of these attempts has few limits on parallel attempts. So this search
# needs no index on the names of the limits.
_AHEAD = """
    SELECT attempt.task, attempt.number, attempt.state = 'running'
    FROM attempt INDEXED BY attempt_unsettled JOIN task ON task.id = attempt.task
    WHERE attempt.state IN ('queued', 'running') AND attempt.ticket < ?
        AND EXISTS (
            SELECT 1 FROM json_each(coalesce(attempt.claims, task.claims)) WHERE json_extract(value, '$[0]') = ?)
    ORDER BY attempt.ticket"""


class QueueOrder:
    """The queued attempts, in the order in which they may start."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self._ledger = ledger

    def join(self, task: str, attempt: int) -> None:
        """Give an attempt its place in the queue, if it has none.

        Nothing happens while the task depends on tasks that have not ended.
        """
        with self._ledger.write():
            self._ledger.db.execute(DRAW_TICKET, (task, attempt))

    def obstacles(self, task: str) -> Obstacles | None:
        """Return why a task's newest attempt cannot start yet.

        Returns None if the attempt is not queued.
        """
        found = self._ledger.task(task)
        if found is None or found.state != "queued":
            return None
        pending, failed = [], []
        # A dependency that was met stays met. So if an earlier attempt of the task has started, the dependencies are
        # not checked again.
        has_begun = any(attempt.started_at is not None for attempt in found.attempts[:-1])
        for dependency in () if has_begun else found.launch.after:
            other = self._ledger.task(dependency.task)
            if other is None:
                failed.append((dependency.task, "gone"))
            elif other.current.settled_at is None:
                pending.append(Holder(task=other.id, attempt=other.current.number))
            elif other.state != "succeeded" and not dependency.any_ending:
                failed.append((other.id, other.state))
        claims = found.launch.claims if found.current.claims is None else found.current.claims
        return Obstacles(
            attempt=found.current,
            claims=claims,
            pending=tuple(pending),
            failed=tuple(failed),
            ahead=tuple(self._ahead(claim, found.current.ticket) for claim in claims),
        )

    def _ahead(self, claim: Claim, ticket: int | None) -> tuple[Holder, ...]:
        if ticket is None:
            return ()
        rows = self._ledger.select(_AHEAD, (ticket, claim.name))
        return tuple(Holder(task=task, attempt=attempt, has_begun=bool(begun)) for task, attempt, begun in rows)

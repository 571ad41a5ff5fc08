"""The reason why a queued task does not run yet, for people and programs."""

from __future__ import annotations

from outlive.domain.tasks.queueing import plan_turn
from outlive.domain.text.sanitize import one_line
from outlive.domain.timestamps import iso
from outlive.domain.value import Value
from outlive.ledger.queue_order import QueueOrder
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Task

_MOST_NAMED = 3


class WaitingFor(Value):
    """The reason why a queued task cannot begin now."""

    tasks: tuple[str, ...]
    """The tasks that have to begin or to end before this task may begin."""
    names: tuple[str, ...]
    """The names given to `--lock` and `--slots`. Empty if the task waits for its dependencies or before a retry."""
    until: datetime | None = None
    """The earliest time at which a retry may begin, or None if the task does not wait before a retry."""

    @property
    def text(self) -> str:
        """The reason as one clause, for people."""
        if self.until is not None:
            return f"waits until {iso(self.until)} before it is tried again"
        others = ", ".join(self.tasks[:_MOST_NAMED])
        more = f" and {len(self.tasks) - _MOST_NAMED} more" if len(self.tasks) > _MOST_NAMED else ""
        if not others:
            return "is about to begin"
        if self.names:
            return f"waits for its turn in {', '.join(one_line(name, 40) for name in self.names)}, after {others}{more}"
        return f"waits for {others}{more}"


def waiting_for(home: Home, task: Task) -> WaitingFor | None:
    """Return what a queued task waits for, or None for any other task."""
    if task.state != "queued":
        return None
    begins = task.current.not_before
    if begins is not None and begins > utc_now():
        return WaitingFor(tasks=(), names=(), until=begins)
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        obstacles = QueueOrder(ledger).obstacles(task.id)
    if obstacles is None:
        return None
    turn = plan_turn(obstacles)
    holders = (turn.must_begin,) if turn.must_begin else turn.must_end
    names = () if obstacles.pending else tuple(claim.name.partition(":")[2] for claim in obstacles.claims)
    return WaitingFor(tasks=tuple(holder.task for holder in holders), names=names if holders else ())


def waiting_json(home: Home, task: Task) -> dict[str, object] | None:
    """Return as JSON what a queued task waits for, or None for any other task."""
    found = waiting_for(home, task)
    if found is None:
        return None
    return {"tasks": [*found.tasks], "names": [*found.names], "until": iso(found.until), "text": found.text}

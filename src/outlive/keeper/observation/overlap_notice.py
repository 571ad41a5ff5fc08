"""The notice of an overlap: two running tasks that write in one git working tree.

Every keeper checks once, right after its task's first write to an existing file. At this time, the write is already in
the task's own file of observed changes. So of two tasks, the keeper of the task that writes later finds the other
task's write.
"""

from __future__ import annotations

from outlive.bundle.attempt import AttemptFiles
from outlive.domain.effects.overlap import shared_tree
from outlive.domain.errors import OutliveError
from outlive.domain.timestamps import UTC, datetime
from outlive.keeper.settle import deliver_if_owed
from outlive.ledger.sqlite import SqliteLedger
from outlive.observe.journal import first_write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.domain.tasks.task import Launch, Task
    from outlive.keeper.plan import Plan


def notify_of_overlap(plan: Plan, top: str) -> None:
    """Notify the sessions of all tasks that write in a working tree.

    The session of this keeper's own task is notified, too.
    """
    try:
        with SqliteLedger(plan.home.ledger, datetime.now(UTC), create=False) as ledger:
            for other in ledger.unsettled():
                if not _may_overlap(plan.launch, other):
                    continue
                files = AttemptFiles(plan.home.bundle(other.id), other.current.number)
                # A submodule has its own working tree. So a task that writes only outside of the submodule does not
                # overlap with a task in the submodule.
                tree = shared_tree(top, other.launch.project) or top
                if first_write(files.effects, tree) and (tree == top or first_write(plan.files.effects, tree)):
                    for task, attempt in _attempts_to_notify(plan, other):
                        ledger.note_overlap(task, attempt)
            deliver_if_owed(plan.home, ledger)
    except (OSError, OutliveError):
        pass  # the notices about the ends of the tasks will mention the overlap


def _may_overlap(launch: Launch, other: Task) -> bool:
    """Return whether the other task runs, and neither task launched the other."""
    is_kin = other.launch.parent == launch.id or launch.parent == other.id
    return other.id != launch.id and other.state == "running" and not is_kin


def _attempts_to_notify(plan: Plan, other: Task) -> list[tuple[str, int]]:
    """Return which of two overlapping attempts get a notice of the overlap.

    These are the attempt of this keeper and the newest attempt of `other`. If one session launched both tasks, only the
    attempt of the task with the greater id is returned.
    """
    found = [(plan.launch.id, plan.files.number), (other.id, other.current.number)]
    is_one = plan.launch.session is not None and plan.launch.session == other.launch.session
    return [max(found)] if is_one else found

"""Words that explain the state `lost` of one attempt."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.domain.tasks.task import Attempt, Task

_CAUSES = {
    "reboot": "the machine was rebooted",
    "keeper_killed": "its keeper and its witness were killed",
    "launcher_killed": "its launcher was killed",
    "bundle_deleted": "its files were deleted",
}


def lost_clause(attempt: Attempt) -> str:
    """Return words that say why the end of an attempt is not known.

    The words also say if the attempt had not begun.
    """
    cause = _CAUSES.get(attempt.reason or "", "no process was left to observe its end")
    if attempt.started_at is None:
        return f"{cause} before it began"
    return f"{cause}, so its exit code is not known"


def lost_hint(task: Task) -> str:
    """Return the hint that names the command to start a lost task again."""
    may_run_again = task.current.started_at is None or task.launch.retries > 0
    return "`outlive retry --lost` starts it again" if may_run_again else f"`outlive retry {task.id}` starts it again"

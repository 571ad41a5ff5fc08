"""Phrases that state why an attempt has the state `lost`."""

from __future__ import annotations

from outlive.domain.tasks.evidence import KILLED_AT_START, LAUNCHER_KILLED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.domain.tasks.task import Attempt, Task

_CAUSES = {
    "reboot": "the machine was rebooted",
    "keeper_killed": "its keeper and its witness were killed",
    "witness_killed": "its witness was killed",
    KILLED_AT_START: "its keeper, its witness or its own process was killed",
    LAUNCHER_KILLED: "its launcher was killed",
    "bundle_deleted": "its files were deleted",
}


def has_begun(attempt: Attempt) -> bool:
    """Return whether the command of an attempt began, or may have begun.

    `started_at` alone does not show whether the command began. It is the time at which the attempt left the queue. The
    attempt's processes may have been killed after this time and before they executed the command.
    """
    return attempt.started_at is not None and attempt.reason not in (KILLED_AT_START, LAUNCHER_KILLED)


def lost_clause(attempt: Attempt) -> str:
    """Return a phrase that states why the end of an attempt is not known.

    If the command had not begun, the phrase states this instead.
    """
    cause = _CAUSES.get(attempt.reason or "", "no process was left to observe its end")
    if not has_begun(attempt):
        return f"{cause} before it began"
    return f"{cause}, so its exit code is not known"


def lost_hint(task: Task) -> str:
    """Return the hint that names the `outlive` command to start a lost task again.

    If the agent of the task asked a question, the hint names the command that answers.
    """
    if task.has_asked:
        return f"`outlive agent --resume {task.id} -- ANSWER` answers its question"
    may_run_again = not has_begun(task.current) or task.launch.retries > 0
    return "`outlive retry --lost` starts it again" if may_run_again else f"`outlive retry {task.id}` starts it again"

"""The paths that a task left changed, recorded in the ledger.

With these rows, readers need not read the task's journal, which is the file with all its observed changes.
"""

from __future__ import annotations

from outlive.bundle.attempt import AttemptFiles
from outlive.domain.errors import OutliveError
from outlive.domain.timestamps import UTC, datetime
from outlive.ledger.left_open_paths import LeftOpenPaths
from outlive.ledger.sqlite import SqliteLedger
from outlive.observe.journal import is_bare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Task
    from outlive.keeper.plan import Plan

# If a task left more paths changed than this, no path is recorded, and readers use the file of observed changes
# instead. More rows would make the ledger slow for every process.
_MOST = 50_000


def changed_nothing(plan: Plan) -> bool:
    """Return whether this is the first attempt, and was observed to change nothing."""
    try:
        return plan.files.number == 1 and is_bare(plan.files.effects)
    except OSError:
        return False


def record_left_open(home: Home, ledger: SqliteLedger, task: Task) -> bool:
    """Record the paths that an unsuccessful task left changed.

    Returns False, and records nothing, if the task is running or has succeeded, if it left too many paths changed, or
    if the paths cannot be found or written.
    """
    number = task.current.number
    if task.current.settled_at is None or task.state == "succeeded":
        return False
    try:
        tries = range(task.first_try(number).number, number + 1)
        if all(is_bare(AttemptFiles(home.bundle(task.id), each).effects) for each in tries):
            LeftOpenPaths(ledger).record(task.id, number, ())
            return True
        from outlive.observe.path_state import state_like  # noqa: PLC0415 - only tasks that changed files need this import
        from outlive.observe.replay_journal import replay_of  # noqa: PLC0415

        paths = replay_of(home, task, number).left_open(state_like)
        if len(paths) > _MOST:
            return False
        LeftOpenPaths(ledger).record(task.id, number, paths)
    except (ImportError, OSError, OutliveError):
        return False  # readers use the file of observed changes instead
    return True


def record_at_end(plan: Plan) -> None:
    """Record the paths that the task left changed, after all files are compared."""
    try:
        with SqliteLedger(plan.home.ledger, datetime.now(UTC), create=False) as ledger:
            task = ledger.task(plan.launch.id)
            if task is not None and task.current.number == plan.files.number:
                # If a power failure loses these rows, readers use the file of observed changes. A sync would slow down
                # the end of every failed task.
                ledger.be_hasty()
                record_left_open(plan.home, ledger, task)
    except OutliveError:
        return  # readers use the file of observed changes instead

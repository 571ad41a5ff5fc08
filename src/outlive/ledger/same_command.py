"""The running tasks that have the same command, directory and project."""

from __future__ import annotations

from outlive.domain.text.sanitize import to_json
from outlive.ledger import rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.domain.tasks.task import Launch
    from outlive.ledger.sqlite import SqliteLedger

# Few tasks run at a time, so this search needs no index on the command.
_RUNNING = """
    SELECT task.id FROM attempt INDEXED BY attempt_unsettled JOIN task ON task.id = attempt.task
    WHERE attempt.state IN ('queued', 'running') AND attempt.state = 'running'
        AND task.argv = ? AND task.cwd = ? AND task.project = ? AND task.kind <> 'agent' AND task.id <> ?
    ORDER BY task.seq DESC"""


def running_with_same_command(ledger: SqliteLedger, launch: Launch) -> list[str]:
    """Return the ids of the running tasks with a launch's command, newest first.

    The tasks also have the directory and the project of the launch. The task of the launch itself is left out.
    """
    cells = (to_json(launch.argv), rows.text(launch.cwd), rows.text(launch.project), launch.id)
    return [row[0] for row in ledger.select(_RUNNING, cells)]

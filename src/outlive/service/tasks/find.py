"""The search for tasks by id or by the beginning of an id.

If no id is given, the only running task is found.
"""

from __future__ import annotations

from outlive.domain.errors import AmbiguousId, UnknownTask, UserError
from outlive.domain.ids import check_prefix
from outlive.domain.text.sanitize import one_line
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Task
    from outlive.ledger.contract import Ledger, Within

_SHOWN = 5


def resolve(ledger: Ledger, text: str, within: Within | None = None) -> Task:
    """Return the task whose id is `text` or begins with `text`.

    With `within`, only the ids of such tasks may be shortened. Raises `UnknownTask` if there is no such task, and
    `AmbiguousId` if there are several.
    """
    prefix = check_prefix(text)
    exact = ledger.task(prefix)
    if exact is not None:
        return exact
    found = ledger.matching(prefix, _SHOWN + 1, within)
    if not found:
        raise UnknownTask(f"no task has an id that begins with {prefix}", "`outlive list --all` shows every task")
    if len(found) > 1:
        names = ", ".join(found[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
        raise AmbiguousId(f"{prefix} may be any of {names}", "give more letters of the id")
    task = ledger.task(found[0])
    if task is None:
        raise UnknownTask(f"task {found[0]} was deleted just now", "`outlive list` shows the remaining tasks")
    return task


def read_tasks(home: Home, ids: Sequence[str]) -> list[Task]:
    """Return the tasks with the given ids from the ledger. Deleted tasks are left out."""
    if not ids:
        return []
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        return [task for one in ids if (task := ledger.task(one)) is not None]


def only_one(tasks: list[Task], verb: str) -> Task:
    """Return the only task in a list of live tasks.

    Raises `UserError` if the list has no task or more than one task.
    """
    if not tasks:
        raise UserError(
            f"this session, or this project outside of a session, has no running or waiting task to {verb}",
            "name a task: `outlive list` shows the tasks of the project",
        )
    if len(tasks) > 1:
        names = "; ".join(f"{task.id} ({one_line(task.launch.command, 30)})" for task in tasks[:_SHOWN])
        raise UserError(
            f"{len(tasks)} tasks run or wait, so name one of them: {names}",
            f"outlive {verb} ID",
        )
    return tasks[0]

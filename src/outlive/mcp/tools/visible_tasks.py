"""The tasks that a caller may see: the tasks of its project and of its session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlive.domain.errors import UnknownTask, UserError
from outlive.ledger.contract import Selection
from outlive.sdk.outlive import adopt
from outlive.service.sessions.lineage import lineage_of, number_of
from outlive.service.tasks.read import find

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive.domain.tasks.task import Task
    from outlive.mcp.tools.tool import Call


def own_tasks(call: Call, ids: Sequence[str]) -> list[Task]:
    """Return the named tasks as they are now, if the caller may see them.

    Raises `UnknownTask` for a task of another project, unless the caller's session launched it.
    """
    found = []
    for one in ids:
        task = find(call.home, [one], adopt)[0]
        if call.caller.project != task.launch.project and not _is_of_session(call, task):
            raise UnknownTask(
                f"no task of this project has an id that begins with {one}",
                "the tool `list` shows the tasks of this project",
            )
        if task not in found:
            found.append(task)
    return found


def _is_of_session(call: Call, task: Task) -> bool:
    """Return whether the lineage of the caller's session launched a task.

    The lineage is the chain of sessions that continue each other. The task may belong to any project.
    """
    session = call.caller.session
    if session is None or task.lineage is None:
        return False
    return task.lineage == lineage_of(call.home, session, call.caller.project)


def own_task(call: Call, one: str) -> Task:
    """Return the named task as it is now, if the caller may see it."""
    return own_tasks(call, [one])[0]


def session_or_project(call: Call) -> Selection:
    """Return a selection of the tasks of the caller's session.

    If the session is not known, the tasks of the caller's project are selected.
    """
    caller = call.caller
    if caller.session is None:
        return Selection(project=caller.project)
    # No session has the number 0, so a session that is not recorded selects no tasks.
    return Selection(session=caller.session, origin=number_of(call.home, caller.session, caller.project) or 0)


def own_session(call: Call) -> str:
    """Return the caller's session.

    Raises `UserError` if the session is not known.
    """
    if call.caller.session is None:
        raise UserError(
            "it is not known which session this is",
            "the client does not name its session; the user can set OUTLIVE_SESSION in the server's environment",
        )
    return call.caller.session

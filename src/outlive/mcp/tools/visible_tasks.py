"""The tasks that a caller may see: those of its project and of its session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlive.domain.errors import UnknownTask, UserError
from outlive.domain.text.sanitize import one_line
from outlive.ledger.contract import Selection, Within
from outlive.sdk.outlive import adopt
from outlive.service.sessions.lineage import lineage_of, number_of
from outlive.service.tasks.read import find

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive.domain.tasks.task import Task
    from outlive.mcp.tools.tool import Call


def own_tasks(call: Call, ids: Sequence[str]) -> list[Task]:
    """Return the tasks with these ids in their current state.

    Raises `UnknownTask` for a task of another project, unless the caller's session launched it.
    """
    found: list[Task] = []
    if not ids:
        return found
    session, project = call.caller.session, call.caller.project
    lineage = None if session is None else lineage_of(call.home, session, project)
    within = Within(project=project, lineage=lineage)
    for one in ids:
        try:
            task = find(call.home, [one], adopt, within)[0]
        except UnknownTask:
            raise _unknown(one) from None
        if project != task.launch.project and (lineage is None or task.lineage != lineage):
            raise _unknown(one)
        if task not in found:
            found.append(task)
    return found


def _unknown(one: str) -> UnknownTask:
    return UnknownTask(
        f"no task of this project has an id that begins with {one_line(one, 60)}",
        "the tool `list` shows the tasks of this project",
    )


def own_task(call: Call, one: str) -> Task:
    """Return the task with this id in its current state.

    Raises `UnknownTask` for a task of another project, unless the caller's session launched it.
    """
    return own_tasks(call, [one])[0]


def session_or_project(call: Call) -> Selection:
    """Return the filter for the tasks of the caller's session.

    If the session is not known, the filter selects the tasks of the caller's project.
    """
    caller = call.caller
    if caller.session is None:
        return Selection(project=caller.project)
    # No session has the number 0. So if the session is not in the ledger, no task is selected.
    return Selection(session=caller.session, origin=number_of(call.home, caller.session, caller.project) or 0)


def own_session(call: Call) -> str:
    """Return the name of the caller's session.

    Raises `UserError` if it is not known.
    """
    if call.caller.session is None:
        raise UserError(
            "it is not known which session this is",
            "the client does not name its session; the user can set OUTLIVE_SESSION in the server's environment",
        )
    return call.caller.session

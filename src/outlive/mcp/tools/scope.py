"""Which tasks a caller may see: those of its own project and of its own session, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlive.client.sdk import adopt
from outlive.domain.errors import UnknownTask, UserError
from outlive.ledger.contract import Selection
from outlive.service.sessions import lineage_of, number_of
from outlive.service.view import find

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive.domain.task import Task
    from outlive.mcp.tools.tool import Call


def own_tasks(call: Call, ids: Sequence[str]) -> list[Task]:
    """The named tasks as they are now; one of another project is not there, unless this session launched it."""
    found = []
    for one in ids:
        task = find(call.home, [one], adopt)[0]
        if call.caller.project != task.launch.project and not _is_of_session(call, task):
            raise UnknownTask(
                f"no task of this project has an id that begins with {one}", "the tool `list` shows those of it"
            )
        if task not in found:
            found.append(task)
    return found


def _is_of_session(call: Call, task: Task) -> bool:
    """Whether the caller's session, or one of those that it continues, launched it: wherever that was."""
    session = call.caller.session
    if session is None or task.lineage is None:
        return False
    return task.lineage == lineage_of(call.home, session, call.caller.project)


def own_task(call: Call, one: str) -> Task:
    """One named task as it is now."""
    return own_tasks(call, [one])[0]


def session_or_project(call: Call) -> Selection:
    """The tasks of the caller's session; of its project if the session is not known."""
    caller = call.caller
    if caller.session is None:
        return Selection(project=caller.project)
    # Of a session that was never heard of there are none.
    return Selection(session=caller.session, origin=number_of(call.home, caller.session, caller.project) or 0)


def own_session(call: Call) -> str:
    """The caller's session, which must be known."""
    if call.caller.session is None:
        raise UserError(
            "it is not known which session this is",
            "the client does not tell; the user can set OUTLIVE_SESSION in the server's environment",
        )
    return call.caller.session

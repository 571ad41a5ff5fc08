"""The tool `guard`: which tasks have changed files and may restore them later."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from outlive.domain.errors import UserError
from outlive.domain.tasks.command import from_shell_text
from outlive.mcp.answer import Answer, framed
from outlive.mcp.tools.tool import Arguments, Call, Tool
from outlive.service.clock import utc_now
from outlive.service.effects.guard import answer_document, answer_lines, coming_lines, guard_command, guard_paths
from outlive.service.tasks.read import find

if TYPE_CHECKING:
    from outlive.service.effects.guard import Announced
    from outlive.service.effects.window_holders import Holder


_HELD = "Held: a task has changed these files and may restore them. Wait for the task, or ask the user first."


class Guard(Arguments):
    """The arguments of `guard`."""

    paths: Annotated[list[str], Field(description="files or directories that you are about to read or edit")] = []
    command: Annotated[str | None, Field(description="a line of shell that you are about to run, instead of paths")] = (
        None
    )
    cwd: Annotated[str | None, Field(description="the working directory; default: the project's")] = None


def guard(call: Call, given: Guard) -> Answer:
    """Return the tasks that have changed the files and may restore them later.

    If there is no such task, return `Clear.`.
    """
    if bool(given.paths) == (given.command is not None):
        raise UserError("guard takes either paths or a command", "give exactly one of the two")
    directory = os.path.join(call.caller.directory, given.cwd or "")
    if given.command is not None:
        found = guard_command(call.home, from_shell_text(given.command).argv, directory, call.environ)
    else:
        found = guard_paths(call.home, [os.path.join(directory, path) for path in given.paths], call.environ)
    found = found.but(
        holders=tuple(each for each in found.holders if _concerns(call, each)),
        unknown=tuple(each for each in found.unknown if _is_own(call, each)),
        coming=tuple(each for each in found.coming if _is_of_project(call, each.task)),
    )
    now = utc_now()
    head = "Clear." if found.is_clear else "Cannot tell." if not found.holders else _HELD
    lines = [*answer_lines(found, now, call.caller.project), *coming_lines(found)]
    return Answer(text=framed(head, lines), document=answer_document(found, now))


def _concerns(call: Call, holder: Holder) -> bool:
    """Return whether a task that has changed files concerns the caller's project.

    It does if the task or one of the files belongs to this project. Other tasks are not shown.
    """
    tree = call.caller.project
    if any(f"{path}/".startswith(f"{tree}/") for path in (holder.window.scope, *holder.window.paths)):
        return True
    return _is_of_project(call, holder.task)


def _is_own(call: Call, announced: Announced) -> bool:
    """Return whether a task whose changes are not observed belongs to the project.

    This is a task of Outlive, or a background command of a client.
    """
    if announced.client is not None:
        return announced.project == call.caller.project
    return _is_of_project(call, announced.task)


def _is_of_project(call: Call, task: str) -> bool:
    return find(call.home, [task], None)[0].launch.project == call.caller.project


TOOL = Tool(
    name="guard",
    title="Does a task hold this file?",
    description=(
        "Return whether a background task holds a file. A task holds a file if it has changed the file and may restore "
        "it, as with a git stash. Do not read, edit or commit such a file. Call this before you touch files while "
        "tasks run."
    ),
    takes=Guard,
    act=guard,
)

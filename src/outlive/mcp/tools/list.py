"""The tool `list`: the tasks of the caller's project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field

from outlive.domain.tasks.lifecycle import LIVE
from outlive.domain.tasks.task_json import duration_s
from outlive.domain.text.sanitize import one_line
from outlive.ledger.contract import Selection
from outlive.mcp.answer import Answer, framed, task_line
from outlive.mcp.tools.tool import Arguments, Call, Tool
from outlive.sdk.outlive import adopt
from outlive.service.clock import utc_now
from outlive.service.tasks.read import select

if TYPE_CHECKING:
    from datetime import datetime

    from outlive.domain.tasks.task import Task

# The text and the JSON of twenty tasks together must fit into 8 kB, because clients give both to the model.
_WIDTH, _NARROW = 50, 22
State = Literal["queued", "running", "succeeded", "failed", "cancelled", "timed_out", "lost"]


class List(Arguments):
    """The arguments of `list`."""

    state: Annotated[
        list[State],
        BeforeValidator(lambda given: [given] if isinstance(given, str) else given),  # models often write one word
        Field(description="list only tasks in these states"),
    ] = []
    group: Annotated[str | None, Field(description="list only tasks of this group")] = None
    session: Annotated[str | None, Field(description="list only tasks that this session launched")] = None
    limit: Annotated[int, Field(ge=1, le=100, description="list at most N tasks")] = 20


def list_tasks(call: Call, given: List) -> Answer:
    """Return the tasks that the arguments select, newest first."""
    now = utc_now()
    selection = Selection(
        project=call.caller.project,
        session=given.session,
        group=given.group,
        states=tuple(given.state),
        limit=given.limit + 1,
    )
    found = select(call.home, selection, adopt)
    tasks = found[: given.limit]
    document: dict[str, object] = {
        "tasks": [short_document(task, now) for task in tasks],
        "more": len(found) > given.limit,
    }
    if given.group is not None:
        document["remaining"] = len(select(call.home, selection.but(states=LIVE, limit=None), None))
    more = " There are more: raise `limit`." if document["more"] else ""
    head = f"Tasks of this project, newest first: {len(tasks)}.{more}" if tasks else "There are no such tasks."
    return Answer(text=framed(head, [short_line(task, now) for task in tasks]), document=document)


def short_document(task: Task, now: datetime) -> dict[str, object]:
    """Return the fields of a task that help to choose one from a list.

    Long texts are shortened, and empty fields are left out. The tool `show` returns all fields.
    """
    launch, attempt = task.launch, task.current
    found = {
        "id": launch.id,
        "state": attempt.state,
        "exit_code": attempt.exit_code,
        "reason": attempt.reason,
        "condition": attempt.condition,
        "duration_s": duration_s(attempt, now),
        "description": None if launch.description is None else _cut(launch.description, _WIDTH),
        "command": _cut(launch.command, _WIDTH if launch.description is None else _NARROW),
        "cwd": None if launch.cwd == launch.project else _cut(launch.cwd, _NARROW),
        "group": None if launch.group is None else _cut(launch.group, _NARROW),
    }
    return {name: each for name, each in found.items() if each is not None}


def short_line(task: Task, now: datetime) -> str:
    """Return one line about a task, for the list."""
    return task_line(task, now, _cut(task.launch.description or task.launch.command, _WIDTH))


def _cut(text: str, room: int) -> str:
    """Return the beginning of a text that takes at most `room` bytes as JSON."""
    line = one_line(text, room)
    while len(line.encode("utf-8", "replace")) + sum(map(line.count, '"\\')) > room:
        line = line[:-2] + "…"
    return line


TOOL = Tool(
    name="list",
    title="List background tasks",
    description="List the background tasks of this project, newest first, with the tasks of earlier sessions.",
    takes=List,
    act=list_tasks,
)

"""The tool `list`: the tasks of the caller's project."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from outlive.client.sdk import adopt
from outlive.domain.lifecycle import LIVE
from outlive.ledger.contract import Selection
from outlive.mcp.tools.tool import Arguments, Call, Tool
from outlive.mcp.words import Answer, framed, task_line
from outlive.service.clock import utc_now
from outlive.service.view import select, task_document

State = Literal["queued", "running", "succeeded", "failed", "cancelled", "timed_out", "lost"]


class List(Arguments):
    """What `list` takes."""

    state: Annotated[list[State], Field(description="only these")] = []
    group: Annotated[str | None, Field(description="only those of this group")] = None
    session: Annotated[str | None, Field(description="only those that this session launched")] = None
    limit: Annotated[int, Field(ge=1, le=100)] = 20


def list_tasks(call: Call, given: List) -> Answer:
    """The selected tasks, newest first."""
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
        "tasks": [task_document(call.home, task, now) for task in tasks],
        "more": len(found) > given.limit,
    }
    if given.group is not None:
        document["remaining"] = len(select(call.home, selection.but(states=LIVE, limit=None), None))
    more = " There are more: raise `limit`." if document["more"] else ""
    head = f"Tasks of this project, newest first: {len(tasks)}.{more}" if tasks else "There are no such tasks."
    return Answer(text=framed(head, [task_line(task, now) for task in tasks]), document=document)


TOOL = Tool(
    name="list",
    title="List background tasks",
    description="The background tasks of this project, newest first, also those of earlier sessions.",
    takes=List,
    act=list_tasks,
)

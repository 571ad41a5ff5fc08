"""The tool `wait`: block until tasks have ended, in slices that no client cuts off.

Clients give a call about a minute. A slice is shorter, and its answer carries what is needed to go
on, so that a wait may last for hours; in between the kernel wakes us, and nothing is polled.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from outlive.client.sdk import adopt
from outlive.domain.errors import UserError
from outlive.domain.lifecycle import LIVE
from outlive.domain.text import from_json, to_json
from outlive.ledger.contract import Selection
from outlive.mcp.tools.scope import own_tasks, session_or_project
from outlive.mcp.tools.tool import Arguments, Call, Tool
from outlive.mcp.words import Answer, framed, tail_lines, task_line
from outlive.service.clock import utc_now
from outlive.service.inbox import result_was_read
from outlive.service.view import select, task_document
from outlive.service.wait import wait_for

if TYPE_CHECKING:
    from outlive.domain.task import Task

SLICE_S = 45


class Wait(Arguments):
    """What `wait` takes."""

    ids: Annotated[list[str], Field(description="default: every running task of this session")] = []
    group: Annotated[str | None, Field(description="the tasks of this group instead")] = None
    any_one: Annotated[bool, Field(description="until one of them has ended")] = False
    seconds: Annotated[float, Field(ge=0, le=SLICE_S, description="answer after so long at the latest")] = SLICE_S
    resume: Annotated[str | None, Field(description="from an earlier answer: go on with that wait")] = None


def wait(call: Call, given: Wait) -> Answer:
    """One slice of waiting."""
    any_one, tasks = _meant(call, given)
    ids = [task.id for task in tasks]
    in_time = wait_for(
        call.home, ids, any_one=any_one, timeout=timedelta(seconds=min(given.seconds, SLICE_S)), adopter=adopt
    )
    after, now = own_tasks(call, ids), utc_now()
    ended = [task for task in after if task.current.settled_at is not None]
    running = [task for task in after if task.current.settled_at is None]
    for task in ended:
        result_was_read(call.home, task, call.caller.session, call.caller.project)
    document = {
        "tasks": [task_document(call.home, task, now) for task in after],
        "timed_out": not in_time,
        "done": in_time,
        "resume": None if in_time else _token(ids, any_one=any_one),
    }
    head = "Nothing is running." if not ids else f"{len(ended)} of {len(ids)} have ended."
    if not in_time:
        head += (
            f' Still running: {", ".join(task.id for task in running)}. Go on with wait(resume="{document["resume"]}").'
        )
    lines = [
        line
        for task in after
        for line in (task_line(task, now), *(tail_lines(call.home, task, 5) if task in ended else ()))
    ]
    return Answer(text=framed(head, lines), document=document)


def _meant(call: Call, given: Wait) -> tuple[bool, list[Task]]:
    if given.resume is not None:
        any_one, ids = _read_token(given.resume)
        return any_one, own_tasks(call, ids)
    if given.ids:
        return given.any_one, own_tasks(call, given.ids)
    if given.group is not None:
        return given.any_one, select(call.home, Selection(project=call.caller.project, group=given.group), adopt)
    return given.any_one, select(call.home, session_or_project(call).but(states=LIVE), adopt)


def _token(ids: list[str], *, any_one: bool) -> str:
    return urlsafe_b64encode(to_json([any_one, *ids]).encode("ascii")).decode("ascii").rstrip("=")


def _read_token(token: str) -> tuple[bool, list[str]]:
    try:
        found = from_json(urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode("ascii"))
    except ValueError:
        found = None
    if not isinstance(found, list) or len(found) < 2:
        raise UserError("resume is not from an answer of this tool", "give the ids instead")
    return bool(found[0]), [str(one) for one in found[1:]]


TOOL = Tool(
    name="wait",
    title="Wait for background tasks",
    description=(
        "Block until tasks have ended, at no cost. Answers after 45 s at the latest; if `done` is false, call it again"
        " with `resume`. Better: do other work, and read `inbox` later."
    ),
    takes=Wait,
    act=wait,
    is_patient=True,
    reads_only=False,
)

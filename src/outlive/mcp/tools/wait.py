"""The tool `wait`: wait until tasks have ended, in several short calls.

Clients stop a call after about a minute. So one call waits for at most 45 seconds. If no task has ended by then, the
reply contains a token with which the next call continues the wait. So a wait may last for hours. Nothing is polled: the
kernel wakes this process when a task ends.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from outlive.domain.errors import UserError
from outlive.domain.tasks.lifecycle import LIVE
from outlive.domain.text.sanitize import from_json, to_json
from outlive.ledger.contract import Selection
from outlive.mcp.answer import Answer, framed, tail_lines, task_line
from outlive.mcp.tools.tool import Arguments, Call, Tool
from outlive.mcp.tools.visible_tasks import own_task, own_tasks, session_or_project
from outlive.mcp.tools.wait_for_pattern import check_pattern, wait_for_line
from outlive.sdk.outlive import adopt
from outlive.service.clock import utc_now
from outlive.service.notices.inbox import result_was_read
from outlive.service.tasks.read import select, select_group
from outlive.service.tasks.task_document import task_document
from outlive.service.tasks.wait import wait_for_all

if TYPE_CHECKING:
    from outlive.domain.tasks.task import Task

SLICE_S = 45


class Wait(Arguments):
    """The arguments of `wait`."""

    ids: Annotated[list[str], Field(description="wait for these tasks; default: this session's running tasks")] = []
    group: Annotated[str | None, Field(description="wait for the tasks of this group instead")] = None
    any_one: Annotated[bool, Field(description="wait only until one task has ended")] = False
    until: Annotated[
        str | None,
        Field(description="wait until a line of one task's output matches this regex, or port:N, http:URL, file:PATH"),
    ] = None
    seconds: Annotated[float, Field(ge=0, le=SLICE_S, description="answer after this time at the latest")] = SLICE_S
    resume: Annotated[str | None, Field(description="the `resume` of an earlier answer, to continue its wait")] = None


def wait(call: Call, given: Wait) -> Answer:
    """Wait for at most `seconds`, and return which tasks have ended.

    If the call has a pattern, return the line of output that matches.
    """
    given = given if given.resume is None else _read_token(given.resume).model_copy(update={"seconds": given.seconds})
    tasks = _meant(call, given)
    return _wait_for_ends(call, given, tasks) if given.until is None else _wait_for_line(call, given, tasks)


def _wait_for_ends(call: Call, given: Wait, tasks: list[Task]) -> Answer:
    in_time, ids = wait_for_all(
        call.home,
        tasks,
        None if given.group is None else lambda: _meant(call, given),
        any_one=given.any_one,
        timeout=timedelta(seconds=given.seconds),
        adopter=adopt,
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
        "resume": None if in_time else _token(given, ids),
    }
    head = "No task is running." if not ids else f"{len(ended)} of {len(ids)} have ended."
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


def _wait_for_line(call: Call, given: Wait, tasks: list[Task]) -> Answer:
    """Wait until a line of the task's output matches a pattern, or a condition holds.

    If the task ends meanwhile, its end does not count as reported, because the caller has only asked for the line.
    """
    if len(tasks) != 1:
        raise UserError("`until` searches the output of exactly one task", "give the id of one task")
    pattern = given.until or ""
    check_pattern(pattern)
    found = wait_for_line(call, tasks[0].id, pattern, given.seconds)
    task, now = own_task(call, tasks[0].id), utc_now()
    has_ended = task.current.settled_at is not None
    timed_out = found.timed_out and not has_ended
    document = {
        "tasks": [task_document(call.home, task, now)],
        "matched": found.line,
        "missing": found.missing or None,
        "timed_out": timed_out,
        "done": not timed_out,
        "resume": _token(given, [task.id]) if timed_out else None,
    }
    head = "`until` holds." if found.line is not None else "`until` does not hold."
    if timed_out:
        head = f'`until` does not hold yet. Go on with wait(resume="{document["resume"]}").'
    lines = [task_line(task, now), f"  | {found.missing if found.line is None else found.line}"]
    if found.line is None and has_ended:
        lines += tail_lines(call.home, task, 5)
    return Answer(text=framed(head, lines), document=document)


def _meant(call: Call, given: Wait) -> list[Task]:
    if given.ids:
        return own_tasks(call, given.ids)
    if given.group is not None:
        return select_group(call.home, Selection(project=call.caller.project, group=given.group), adopt)
    return select(call.home, session_or_project(call).but(states=LIVE), adopt)


def _token(given: Wait, ids: list[str]) -> str:
    content = to_json([given.any_one, given.until, given.group, *(ids if given.group is None else ())])
    return urlsafe_b64encode(content.encode("ascii")).decode("ascii").rstrip("=")


def _read_token(token: str) -> Wait:
    try:
        content: Any = from_json(urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode("ascii"))
        any_one, until, group, *ids = content
        if not ids and group is None:
            raise ValueError("the token names no task")
        return Wait(any_one=any_one, until=until, group=group, ids=ids)
    except (ValueError, TypeError, RecursionError) as error:
        raise UserError(
            "`resume` is not a value that this tool has returned", "give the ids of the tasks instead"
        ) from error


TOOL = Tool(
    name="wait",
    title="Wait for background tasks",
    description=(
        "Block until tasks have ended, without polling. The answer comes after 45 s at the latest. If its `done` is "
        "false, call this tool again with `resume`. With `until`, wait until a line of output matches, or until "
        "the task listens on a port (`port:5173`). If you can, do other work instead, and read `inbox` later."
    ),
    takes=Wait,
    act=wait,
    is_patient=True,
    reads_only=False,
)

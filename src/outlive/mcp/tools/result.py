"""The tool `result`: how a task ended, and the end of its output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlive.domain.errors import Conflict
from outlive.mcp.tools.scope import own_task
from outlive.mcp.tools.show import Id
from outlive.mcp.tools.tool import Arguments, Call, Tool
from outlive.mcp.words import Answer, framed, tail_lines, task_line
from outlive.service.clock import utc_now
from outlive.service.inbox import result_was_read
from outlive.service.view import task_document

if TYPE_CHECKING:
    from outlive.domain.task import Task


class Result(Arguments):
    """What `result` takes."""

    id: Id


def result(call: Call, given: Result) -> Answer:
    """The ending of one task."""
    task = own_task(call, given.id)
    if task.current.settled_at is None:
        raise Conflict(f"task {task.id} is {task.state} and has no result yet", "the tool `wait` blocks until it has")
    return result_of(call, task)


def result_of(call: Call, task: Task) -> Answer:
    """The ending and the tail; inside its own session this withdraws the notice."""
    now = utc_now()
    lines = [task_line(task, now), *tail_lines(call.home, task)]
    answer = Answer(
        text=framed(f"Result of {task.id}: {task.state}.", lines), document=task_document(call.home, task, now)
    )
    result_was_read(call.home, task, call.caller.session, call.caller.project)
    return answer


TOOL = Tool(
    name="result",
    title="Read a task's result",
    description="How an ended task ended, with the end of its output. Counts as having been told.",
    takes=Result,
    act=result,
    reads_only=False,
)

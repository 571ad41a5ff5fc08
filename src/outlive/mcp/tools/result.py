"""The tool `result`: how a task ended, and the end of its output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlive.domain.errors import Conflict
from outlive.mcp.answer import Answer, framed, task_answer
from outlive.mcp.tools.tool import Call, OneTask, Tool
from outlive.mcp.tools.visible_tasks import own_task
from outlive.service.notices.inbox import result_was_read
from outlive.service.notices.reserve import read_ending

if TYPE_CHECKING:
    from outlive.domain.tasks.task import Task


def result(call: Call, given: OneTask) -> Answer:
    """Return how one task ended."""
    task = own_task(call, given.id)
    if task.current.settled_at is None:
        raise Conflict(f"task {task.id} is {task.state} and has no result yet", "the tool `wait` waits for the result")
    return result_of(call, task)


def result_of(call: Call, task: Task, *, is_asked_for: bool = True) -> Answer:
    """Return how a task ended, in the words of its notice.

    The task's notices are acknowledged, if the caller's session may acknowledge them. If the end was reported before
    and the caller did not ask for it (`is_asked_for`), the result is only one line.
    """
    ending = read_ending(call.home, task.id, call.caller.session, call.caller.project)
    is_known = ending.was_told and not is_asked_for
    text = framed("This ending was reported before.", [ending.line]) if is_known else ending.text
    answer = task_answer(call.home, task, text)
    result_was_read(call.home, task, call.caller.session, call.caller.project)
    return answer


TOOL = Tool(
    name="result",
    title="Read a task's result",
    description="Return how a task ended, with the end of its output. The ending then counts as reported.",
    takes=OneTask,
    act=result,
    reads_only=False,
)

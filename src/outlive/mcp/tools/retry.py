"""The tool `retry`: a new attempt of a task that has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlive.mcp.answer import Answer, task_answer
from outlive.mcp.permission import check_may_run
from outlive.mcp.tools.tool import Call, LaunchTool, OneTask
from outlive.mcp.tools.visible_tasks import own_task
from outlive.sdk.outlive import adopt, retry_for
from outlive.service.tasks.read import find

if TYPE_CHECKING:
    from datetime import timedelta


def launch(call: Call, given: OneTask, _: timedelta | None = None) -> str:
    """Start a new attempt of a task, and return the task's id.

    Raises `RunRefused` if this server may not launch tasks.
    """
    check_may_run(call.caller, call.environ)
    task = own_task(call, given.id)
    retry_for(call.home, task, call.caller.session, call.caller.project)
    return task.id


def retry(call: Call, given: OneTask) -> Answer:
    """Start a new attempt of a task, and reply at once."""
    task = find(call.home, [launch(call, given)], adopt)[0]
    head = f"Task {task.id} is {task.state}, attempt {task.current.number}."
    return task_answer(call.home, task, f"{head} Its ending is recorded, and `wait` and `inbox` report it.")


TOOL = LaunchTool(
    name="retry",
    title="Try a background task again",
    description=(
        "Start a new attempt of a task that has ended: the same command and directory under the same id. Earlier "
        "attempts keep their output and ending. This tool refuses in the same cases as `run`, and if an agent ended "
        "with a question: `agent` with `resume` answers."
    ),
    takes=OneTask,
    act=retry,
    launch=launch,
)

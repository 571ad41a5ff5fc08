"""The tool `cancel`: end tasks with everything they started, and tell the truth about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from outlive.client.sdk import adopt
from outlive.domain.errors import Conflict
from outlive.domain.lifecycle import LIVE
from outlive.ledger.contract import Selection
from outlive.mcp.tools.scope import own_tasks, session_or_project
from outlive.mcp.tools.tool import Arguments, Call, Tool
from outlive.mcp.words import Answer, framed, task_line
from outlive.service import cancel as cancelling
from outlive.service.clock import utc_now
from outlive.service.lookup import only_one
from outlive.service.view import select, select_group, task_document

if TYPE_CHECKING:
    from outlive.service.cancel import Cancelled


class Cancel(Arguments):
    """What `cancel` takes."""

    ids: Annotated[list[str], Field(description="default: the only running task of this session")] = []
    group: Annotated[str | None, Field(description="the running tasks of this group instead")] = None
    descendants: Annotated[bool, Field(description="also the tasks that were launched from inside them")] = False


def cancel(call: Call, given: Cancel) -> Answer:
    """Cancel, then say for each task what came of it."""
    ids = _meant(call, given)
    if given.descendants:
        ids = cancelling.with_descendants(call.home, ids)
    outcomes, now = cancelling.cancel(call.home, ids, adopt), utc_now()
    failed = [each for each in outcomes if not each.took and not each.late]
    head = f"{sum(each.took for each in outcomes)} of {len(outcomes)} cancelled."
    if failed:
        head += " Something of the others is still alive."
    return Answer(
        text=framed(head, [_line(each) for each in outcomes]),
        document={"tasks": [{"cancelled": each.took, **task_document(call.home, each.task, now)} for each in outcomes]},
        is_error=bool(failed),
    )


def _meant(call: Call, given: Cancel) -> list[str]:
    if given.ids:
        tasks = own_tasks(call, given.ids)
        for task in tasks:
            if task.current.settled_at is not None and not given.descendants:
                raise Conflict(f"task {task.id} is {task.state} and cannot be cancelled", "the tool `show` tells how")
        return [task.id for task in tasks]
    if given.group is not None:
        group = Selection(project=call.caller.project, group=given.group, states=LIVE)
        return [task.id for task in select_group(call.home, group, adopt)]
    return [only_one(select(call.home, session_or_project(call).but(states=LIVE), adopt), "cancel").id]


def _line(outcome: Cancelled) -> str:
    late = "too late, it had ended by itself: " if outcome.late else ""
    left = ", ".join(str(process.pid) for process in outcome.task.current.left_running)
    return f"{late}{task_line(outcome.task, utc_now())}{f' (still alive: {left})' if left else ''}"


TOOL = Tool(
    name="cancel",
    title="Cancel background tasks",
    description="End tasks with every process they started: interrupt, then terminate, then kill. Says what is left.",
    takes=Cancel,
    act=cancel,
    is_patient=True,
    reads_only=False,
    destroys=True,
)

"""The tool `cancel`: end tasks with every process that they started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from outlive.domain.errors import Conflict
from outlive.domain.tasks.lifecycle import LIVE
from outlive.ledger.contract import Selection
from outlive.mcp.answer import Answer, framed, task_line
from outlive.mcp.tools.tool import Arguments, Call, Tool
from outlive.mcp.tools.visible_tasks import own_tasks, session_or_project
from outlive.sdk.outlive import adopt
from outlive.service.clock import utc_now
from outlive.service.tasks import cancel as cancelling
from outlive.service.tasks.find import only_one
from outlive.service.tasks.read import select, select_group
from outlive.service.tasks.task_document import task_document

if TYPE_CHECKING:
    from outlive.service.tasks.cancel import Cancelled


class Cancel(Arguments):
    """The arguments of `cancel`."""

    ids: Annotated[list[str], Field(description="end these tasks; default: the only running task of this session")] = []
    group: Annotated[str | None, Field(description="end the running tasks of this group instead")] = None
    descendants: Annotated[bool, Field(description="also end the tasks that were launched inside these tasks")] = False


def cancel(call: Call, given: Cancel) -> Answer:
    """Cancel tasks, and return for each of them what happened."""
    ids = _meant(call, given)
    if given.descendants:
        ids = cancelling.with_descendants(call.home, ids)
    outcomes, now = cancelling.cancel(call.home, ids, adopt), utc_now()
    failed = [each for each in outcomes if not each.is_done and not each.late]
    head = f"{sum(each.took for each in outcomes)} of {len(outcomes)} cancelled."
    if failed:
        head += " Some processes are still alive."
    return Answer(
        text=framed(head, [_line(each) for each in outcomes]),
        document={
            "tasks": [
                {**cancelling.cancelled_json(each), **task_document(call.home, each.task, now)} for each in outcomes
            ]
        },
        is_error=bool(failed),
    )


def _meant(call: Call, given: Cancel) -> list[str]:
    if given.ids:
        tasks = own_tasks(call, given.ids)
        for task in tasks:
            is_over = task.current.settled_at is not None and not cancelling.leftovers_of(call.home, task)
            if is_over and not given.descendants:
                raise Conflict(
                    f"task {task.id} is {task.state} and cannot be cancelled",
                    "the tool `show` tells how the task ended",
                )
        return [task.id for task in tasks]
    if given.group is not None:
        group = Selection(project=call.caller.project, group=given.group, states=LIVE)
        return [task.id for task in select_group(call.home, group, adopt)]
    return [only_one(select(call.home, session_or_project(call).but(states=LIVE), adopt), "cancel").id]


def _line(outcome: Cancelled) -> str:
    late = "too late, the task had ended by itself: " if outcome.late else ""
    ended = (
        f" (ended the processes that the task left running: {cancelling.pids_of(outcome.ended)})"
        if outcome.ended
        else ""
    )
    left = f" (still alive: {cancelling.pids_of(outcome.alive)})" if outcome.alive else ""
    return f"{late}{task_line(outcome.task, utc_now())}{ended}{left}"


TOOL = Tool(
    name="cancel",
    title="Cancel background tasks",
    description=(
        "End tasks with every process they started: interrupt, then terminate, then kill. Returns the processes that"
        " are still alive."
    ),
    takes=Cancel,
    act=cancel,
    is_patient=True,
    reads_only=False,
    destroys=True,
)

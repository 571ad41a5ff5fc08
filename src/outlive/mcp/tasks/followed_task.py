"""A task as an MCP client sees it, for both revisions of MCP tasks.

An MCP task is an Outlive task, and has no record of its own. The client gets the task's id with a signature. The task
is recorded on disk before that, so it continues if the server is killed.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from outlive.domain.errors import NotStarted, OutliveError
from outlive.domain.notices.notice_text import how_it_ended
from outlive.domain.tasks.evidence import INSTALLATION_GONE
from outlive.domain.timestamps import iso
from outlive.domain.value import Value
from outlive.mcp.server_secret import read_secret, sealed, unsealed
from outlive.mcp.tools.result import result_of
from outlive.mcp.tools.visible_tasks import own_task
from outlive.sdk.outlive import adopt
from outlive.service.clock import utc_now
from outlive.service.tasks.cancel import cancel
from outlive.service.tasks.wait import wait_for

if TYPE_CHECKING:
    from datetime import datetime

    from outlive.domain.tasks.task import Task
    from outlive.mcp.answer import Answer
    from outlive.mcp.tools.tool import Call, Tool

# The longer a task runs, the less often clients are asked to poll. A client may learn of the end one interval late.
_SHORTEST_POLL_S, _LONGEST_POLL_S = 5.0, 60.0
_POLLS_IN_A_LIFETIME = 10
_LONGEST_MS = 365 * 86_400_000


class Followed(Value):
    """A task that an MCP client polls, with the id that the client knows."""

    task: Task
    name: str
    """The task's id with a signature, as the client knows it."""
    poll_s: float
    """The number of seconds after which the client should ask again."""

    @property
    def has_ended(self) -> bool:
        """Whether the task has ended, so that its result can be read."""
        return self.task.current.settled_at is not None

    @property
    def is_broken(self) -> bool:
        """Whether the call failed because the command never ran or its end is unknown."""
        return self.task.state == "lost" or self.task.current.reason in ("not_started", INSTALLATION_GONE)

    @property
    def succeeded(self) -> bool:
        """Whether the task succeeded."""
        return self.task.state == "succeeded"

    def status(self, *, has_failed: bool) -> str:
        """Return the status of the MCP task.

        `has_failed` decides the status of a task that has ended and was not cancelled.
        """
        if not self.has_ended:
            return "working"
        if self.task.state == "cancelled":
            return "cancelled"
        return "failed" if has_failed else "completed"

    def view(self, *, has_failed: bool) -> dict[str, Any]:
        """Return the JSON that both revisions have in common."""
        attempt = self.task.current
        changed = attempt.settled_at or attempt.started_at or attempt.created_at
        return {
            "taskId": self.name,
            "status": self.status(has_failed=has_failed),
            "statusMessage": f"task {self.task.id}: {how_it_ended(attempt)}",
            "createdAt": str(iso(self.task.launch.created_at)),
            "lastUpdatedAt": str(iso(changed)),
        }

    def ttl_ms(self) -> int | None:
        """Return how long the task's record is kept, in milliseconds from its creation.

        Returns None while the task runs, because its end decides how long the record is kept.
        """
        until = self.task.current.delete_after
        return None if until is None else int((until - self.task.launch.created_at).total_seconds() * 1000)


def begin(call: Call, tool: Tool, given: Any, keep_ms: int | None = None) -> Followed:
    """Launch the task of a tool call, and return it as the client will see it.

    A task whose command could not be started is returned, too. `keep_ms` is how long the client wants the result to be
    kept, in milliseconds.
    """
    assert tool.launch is not None  # noqa: S101 - the callers have checked that the tool launches tasks
    try:
        task = tool.launch(call, given, None if keep_ms is None else timedelta(milliseconds=min(keep_ms, _LONGEST_MS)))
    except NotStarted as error:
        task = error.task
    return followed(call, own_task(call, task))


def find(call: Call, name: str) -> Followed:
    """Return the task whose id and signature a client has sent.

    Raises `MCPError` if there is no such task, or if the caller may not see it.
    """
    task = unsealed(read_secret(call.home), name)
    try:
        found = None if task is None else own_task(call, task)
    except OutliveError:
        found = None
    if found is None:
        raise MCPError(code=INVALID_PARAMS, message="Failed to retrieve task: Task not found")
    return followed(call, found)


def wait_for_end(call: Call, one: Followed, seconds: float) -> Followed:
    """Wait at most `seconds` until a task has ended, and return its new state."""
    wait_for(call.home, [one.task.id], timeout=timedelta(seconds=seconds), adopter=adopt)
    return find(call, one.name)


def end(call: Call, one: Followed) -> Followed:
    """Cancel a task with every process that it started, and return its new state."""
    cancel(call.home, [one.task.id], adopt)
    return find(call, one.name)


def result(call: Call, one: Followed, *, is_first: bool) -> Answer:
    """Return what a tool call would return if it had waited for the task's end.

    From then on, the end counts as reported to the session. `is_first` says that this server has not delivered the
    result before. If the session knows the end from a notice already, the first result is only one line.
    """
    return result_of(call, one.task, is_asked_for=not is_first)


def wire_result(call: Call, answer: Answer) -> dict[str, Any]:
    """Return the reply of a tool as the JSON of the MCP protocol."""
    found = answer.result(with_document=call.caller.wants_documents)
    return found.model_dump(by_alias=True, mode="json", exclude_none=True)


def followed(call: Call, task: Task) -> Followed:
    """Return a task as an MCP client sees it.

    The task's id has a signature, so that a client cannot guess the ids of other tasks.
    """
    return Followed(task=task, name=sealed(read_secret(call.home), task.id), poll_s=poll_interval_s(task, utc_now()))


def poll_interval_s(task: Task, now: datetime) -> float:
    """Return after how many seconds a client should ask for a task again.

    This is a tenth of the task's age, but at least 5 and at most 60 seconds.
    """
    age_s = (now - task.launch.created_at).total_seconds()
    return min(max(age_s / _POLLS_IN_A_LIFETIME, _SHORTEST_POLL_S), _LONGEST_POLL_S)

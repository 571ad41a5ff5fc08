"""Following a task through MCP: its status in the protocol's words, for both dialects of tasks.

There is no second record: an MCP task is a task of Outlive under a sealed id, so it is durable before
it is answered, lives on when the server is killed, and any later server answers for it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from outlive.client.sdk import adopt
from outlive.domain.errors import NotStarted, OutliveError
from outlive.domain.telling import how_it_ended
from outlive.domain.value import Value
from outlive.domain.when import iso
from outlive.mcp.secret import read_secret, sealed, unsealed
from outlive.mcp.tools.result import result_of
from outlive.mcp.tools.scope import own_task
from outlive.service.cancel import cancel
from outlive.service.wait import wait_for

if TYPE_CHECKING:
    from outlive.domain.task import Task
    from outlive.mcp.tools.tool import Call, Tool

POLL_MS = 1000
_LONGEST_MS = 365 * 86_400_000


class Followed(Value):
    """A task as a client follows it."""

    task: Task
    name: str
    """Its sealed id."""

    @property
    def has_ended(self) -> bool:
        """Whether there is a result."""
        return self.task.current.settled_at is not None

    @property
    def is_broken(self) -> bool:
        """Whether the call itself went wrong: the command never ran, or nobody saw how it ended."""
        return self.task.state == "lost" or self.task.current.reason == "not_started"

    @property
    def succeeded(self) -> bool:
        """Whether it ended well."""
        return self.task.state == "succeeded"

    def times(self) -> dict[str, str]:
        """When it was made, and when it last changed."""
        attempt = self.task.current
        changed = attempt.settled_at or attempt.started_at or attempt.created_at
        return {"createdAt": str(iso(self.task.launch.created_at)), "lastUpdatedAt": str(iso(changed))}

    def ttl_ms(self) -> int | None:
        """How long it is kept, from its making; not known while it runs, since that begins with its end."""
        until = self.task.current.delete_after
        return None if until is None else int((until - self.task.launch.created_at).total_seconds() * 1000)

    def words(self) -> str:
        """Its state in a few words."""
        return f"task {self.task.id}: {how_it_ended(self.task.current)}"


def begin(call: Call, tool: Tool, given: Any, keep_ms: int | None = None) -> Followed:
    """Launch what a tool launches, and follow it; what could not be started is on record, too."""
    assert tool.launch is not None  # noqa: S101 - only such tools are followed
    try:
        task = tool.launch(call, given, None if keep_ms is None else timedelta(milliseconds=min(keep_ms, _LONGEST_MS)))
    except NotStarted as error:
        task = error.task
    return _followed(call, own_task(call, task))


def find(call: Call, name: str) -> Followed:
    """The task of a sealed id, which must be of the caller's project."""
    task = unsealed(read_secret(call.home), name)
    try:
        found = None if task is None else own_task(call, task)
    except OutliveError:
        found = None
    if found is None:
        raise MCPError(code=INVALID_PARAMS, message="Failed to retrieve task: Task not found")
    return _followed(call, found)


def wait_for_end(call: Call, followed: Followed, seconds: float) -> Followed:
    """The task when it has ended, or when the time is up."""
    wait_for(call.home, [followed.task.id], timeout=timedelta(seconds=seconds), adopter=adopt)
    return find(call, followed.name)


def end(call: Call, followed: Followed) -> Followed:
    """Cancel it with everything it started."""
    cancel(call.home, [followed.task.id], adopt)
    return find(call, followed.name)


def result(call: Call, followed: Followed) -> dict[str, Any]:
    """What the call would have answered, had it waited; reading it counts as having been told."""
    answer = result_of(call, followed.task).but(is_error=not followed.succeeded)
    found = answer.result(with_document=call.caller.wants_documents)
    return found.model_dump(by_alias=True, mode="json", exclude_none=True)


def _followed(call: Call, task: Task) -> Followed:
    return Followed(task=task, name=sealed(read_secret(call.home), task.id))

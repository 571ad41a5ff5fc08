"""MCP tasks of the extension of 2026-07-28, `io.modelcontextprotocol/tasks`.

If a client declares the extension, a tool that launches a task replies at once with an MCP task. The client gets the
result from `tasks/get`. The protocol lets a server ask the client for input while the task runs, but Outlive never
asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types import HEADER_MISMATCH, INTERNAL_ERROR, MISSING_REQUIRED_CLIENT_CAPABILITY, RequestParams
from pydantic import Field

from outlive.mcp.answer import harmless
from outlive.mcp.tasks import followed_task
from outlive.mcp.threads import cross

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.session import ServerSession

    from outlive.mcp.dispatch import Dispatcher
    from outlive.mcp.tasks.followed_task import Followed
    from outlive.mcp.tools.tool import Arguments, Call, Tool

EXTENSION = "io.modelcontextprotocol/tasks"


class TaskParams(RequestParams):
    """The parameters of all methods of the extension."""

    task_id: str = Field(alias="taskId")


class UpdateParams(TaskParams):
    """The parameters of `tasks/update`."""

    input_responses: dict[str, Any] = Field(alias="inputResponses", default_factory=dict)


class TasksExtension:
    """The methods of the MCP tasks extension."""

    def __init__(self, desk: Dispatcher) -> None:
        self._desk = desk

    def wants_task(self, ctx: ServerRequestContext[Any, Any], tool: Tool) -> bool:
        """Return whether a call is to be replied to with an MCP task.

        Raises `MCPError` if the tool always replies with a task, but the client has not declared the extension.
        """
        if tool.launch is None:
            return False
        if tool.task_support == "required":
            check_declared(ctx.session)
        return is_declared(ctx.session)

    async def begin(self, call: Call, tool: Tool, given: Arguments) -> dict[str, Any]:
        """Launch the task of a tool call, and reply with the MCP task."""
        followed = await cross(followed_task.begin, call, tool, given)
        await self._desk.reservations.asked(followed.task.id, followed.poll_s)
        return {"resultType": "task", **_bare(followed)}

    async def get(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> dict[str, Any]:
        """Reply to `tasks/get` with a task's status, and with the result if it has ended."""
        call, followed = await self._find(ctx, params)
        found = {"resultType": "complete", **_bare(followed)}
        if not followed.has_ended:
            await self._desk.reservations.asked(followed.task.id, followed.poll_s)
            return found
        answer = await self._desk.read_result(call, followed)
        if found["status"] == "completed":
            is_error = not followed.succeeded and call.caller.takes_errors
            result = followed_task.wire_result(call, answer.but(is_error=is_error))
            found["result"] = {"resultType": "complete", **result}
        if found["status"] == "failed":
            found["error"] = {"code": INTERNAL_ERROR, "message": harmless(answer.text)}
        return found

    async def update(self, ctx: ServerRequestContext[Any, Any], params: UpdateParams) -> dict[str, Any]:
        """Reply to `tasks/update`. The input is ignored, because Outlive asks for none."""
        await self._find(ctx, params)
        return {"resultType": "complete"}

    async def cancel(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> dict[str, Any]:
        """Reply to `tasks/cancel`: end the task with every process that it started."""
        call, followed = await self._find(ctx, params)
        if not followed.has_ended:
            await cross(followed_task.end, call, followed, patient="cancel")
        return {"resultType": "complete"}

    async def _find(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> tuple[Call, Followed]:
        check_declared(ctx.session)
        _check_routing(ctx, params.task_id)
        call = await self._desk.call_of(ctx)
        return call, await cross(followed_task.find, call, params.task_id)


def is_declared(session: ServerSession) -> bool:
    """Return whether the client has declared the MCP tasks extension."""
    declared = session.client_capabilities
    return declared is not None and EXTENSION in (declared.extensions or {})


def check_declared(session: ServerSession) -> None:
    """Raise `MCPError` if the client has not declared the MCP tasks extension."""
    if not is_declared(session):
        raise MCPError(
            code=MISSING_REQUIRED_CLIENT_CAPABILITY,
            message=f"the client has not declared the extension {EXTENSION}",
            data={"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
        )


def _check_routing(ctx: ServerRequestContext[Any, Any], name: str) -> None:
    """Raise `MCPError` if the header `Mcp-Name` names another task than the request.

    The MCP SDK does not check this.
    """
    if ctx.request is not None and decode_header_value(ctx.request.headers.get(MCP_NAME_HEADER)) != name:
        raise MCPError(code=HEADER_MISMATCH, message="the header Mcp-Name does not name the same task as the body")


def _bare(followed: Followed) -> dict[str, Any]:
    """Return the JSON of an MCP task, without the task's result.

    The status is `completed` even if the command failed.
    """
    return {
        **followed.view(has_failed=followed.is_broken),
        "ttlMs": followed.ttl_ms(),
        "pollIntervalMs": int(followed.poll_s * 1000),
    }

"""MCP tasks as the extension `io.modelcontextprotocol/tasks` of 2026-07-28 has them: the server decides.

For a client that declares the extension, a tool that launches answers with the task instead of
waiting; the result comes with `tasks/get`. Nothing of ours asks the client for input in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types import HEADER_MISMATCH, INTERNAL_ERROR, MISSING_REQUIRED_CLIENT_CAPABILITY, RequestParams
from pydantic import Field

from outlive.mcp import following
from outlive.mcp.crossing import cross

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.session import ServerSession

    from outlive.mcp.desk import Desk
    from outlive.mcp.following import Followed
    from outlive.mcp.tools.tool import Arguments, Call, Tool

EXTENSION = "io.modelcontextprotocol/tasks"


class TaskParams(RequestParams):
    """What all methods of the extension take."""

    task_id: str = Field(alias="taskId")


class UpdateParams(TaskParams):
    """... and `tasks/update`."""

    input_responses: dict[str, Any] = Field(alias="inputResponses", default_factory=dict)


class TasksExtension:
    """The dialect."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def wants_task(self, ctx: ServerRequestContext[Any, Any], tool: Tool) -> bool:
        """Whether this call is answered with a task."""
        if tool.launch is None:
            return False
        if tool.task_support == "required":
            check_declared(ctx.session)
        return is_declared(ctx.session)

    async def begin(self, call: Call, tool: Tool, given: Arguments) -> dict[str, Any]:
        """The answer to a call that has become a task."""
        followed = await cross(following.begin, call, tool, given)
        return {"resultType": "task", **_bare(followed)}

    async def get(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> dict[str, Any]:
        """`tasks/get`: where it stands, with its result once there is one."""
        call, followed = await self._find(ctx, params)
        found = {"resultType": "complete", **_bare(followed)}
        if found["status"] == "completed":
            found["result"] = {"resultType": "complete", **await cross(following.result, call, followed)}
        if found["status"] == "failed":
            found["error"] = {"code": INTERNAL_ERROR, "message": followed.words()}
        return found

    async def update(self, ctx: ServerRequestContext[Any, Any], params: UpdateParams) -> dict[str, Any]:
        """`tasks/update`: answers to questions that were never asked are taken note of, and ignored."""
        await self._find(ctx, params)
        return {"resultType": "complete"}

    async def cancel(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> dict[str, Any]:
        """`tasks/cancel`: ends it with everything it started; one that has ended stays as it is."""
        call, followed = await self._find(ctx, params)
        if not followed.has_ended:
            await cross(following.end, call, followed, patient="cancel")
        return {"resultType": "complete"}

    async def _find(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> tuple[Call, Followed]:
        check_declared(ctx.session)
        _check_routing(ctx, params.task_id)
        call = await self._desk.call_of(ctx)
        return call, await cross(following.find, call, params.task_id)


def is_declared(session: ServerSession) -> bool:
    """Whether the client speaks the extension."""
    declared = session.client_capabilities
    return declared is not None and EXTENSION in (declared.extensions or {})


def check_declared(session: ServerSession) -> None:
    """Refuse a client that would not understand the answer."""
    if not is_declared(session):
        raise MCPError(
            code=MISSING_REQUIRED_CLIENT_CAPABILITY,
            message=f"the client has not declared the extension {EXTENSION}",
            data={"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
        )


def _check_routing(ctx: ServerRequestContext[Any, Any], name: str) -> None:
    """Over HTTP the header that routes the request must name the same task; the SDK checks only its own methods."""
    if ctx.request is not None and decode_header_value(ctx.request.headers.get(MCP_NAME_HEADER)) != name:
        raise MCPError(code=HEADER_MISMATCH, message="the header Mcp-Name does not name the task of the body")


def _bare(followed: Followed) -> dict[str, Any]:
    """A task in this dialect's words, without its result; a command that failed is `completed` with an error in it."""
    return {
        "taskId": followed.name,
        "status": _status(followed),
        "statusMessage": followed.words(),
        **followed.times(),
        "ttlMs": followed.ttl_ms(),
        "pollIntervalMs": following.POLL_MS,
    }


def _status(followed: Followed) -> str:
    if not followed.has_ended:
        return "working"
    if followed.task.state == "cancelled":
        return "cancelled"
    return "failed" if followed.is_broken else "completed"

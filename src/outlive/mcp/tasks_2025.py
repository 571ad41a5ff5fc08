"""MCP tasks as the revision 2025-11-25 has them: the client asks for a task, by `params.task`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND

from outlive.client.sdk import adopt
from outlive.domain.errors import UserError
from outlive.ledger.contract import Selection
from outlive.mcp import following
from outlive.mcp.crossing import cross
from outlive.mcp.desk import as_ours
from outlive.mcp.secret import read_secret, sealed
from outlive.mcp.words import error_answer
from outlive.service.view import select

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from outlive.mcp.desk import Desk
    from outlive.mcp.following import Followed
    from outlive.mcp.tasks_extension import TaskParams
    from outlive.mcp.tools.tool import Call

VERSIONS = frozenset({"2025-11-25"})
RELATED = "io.modelcontextprotocol/related-task"
_SLICE_S = 45.0
_PAGE = 50
_LONGEST_CURSOR = 12


def capability() -> types.ServerTasksCapability:
    """What we say of it in the handshake."""
    return types.ServerTasksCapability.model_validate({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}})


class Tasks2025:
    """The dialect, as a layer around `tools/call` and as methods of its own."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """A call that asks for a task gets one; the SDK's own shapes know only results."""
        params = ctx.params or {}
        if ctx.method != "tools/call" or ctx.protocol_version not in VERSIONS:
            return await call_next(ctx)
        tool = self._desk.tools.get(str(params.get("name")))
        wanted = params.get("task")
        if wanted is None:
            if tool is not None and tool.task_support == "required":
                raise MCPError(code=METHOD_NOT_FOUND, message=f"{tool.name} is only called as a task: add params.task")
            return await call_next(ctx)
        if tool is None or tool.launch is None:
            raise MCPError(code=METHOD_NOT_FOUND, message="this tool is not called as a task")
        if not isinstance(wanted, dict) or not isinstance(params.get("arguments") or {}, dict):
            raise MCPError(code=INVALID_PARAMS, message="task and arguments are objects")
        keep = wanted.get("ttl")
        if keep is not None and (not isinstance(keep, int) or keep < 0):
            raise MCPError(code=INVALID_PARAMS, message="task.ttl is a number of milliseconds")
        call = await self._desk.call_of(ctx)
        try:
            given = tool.check(params.get("arguments"))
            followed = await cross(following.begin, call, tool, given, keep)
        except Exception as error:
            # Who has asked for a task can make nothing of a result.
            code = INVALID_PARAMS if isinstance(error, UserError) else INTERNAL_ERROR
            raise MCPError(code=code, message=error_answer(as_ours(error)).text) from error
        return {"task": view(followed)}

    async def get(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> dict[str, Any]:
        """`tasks/get`: where it stands."""
        return view(await self._find(ctx, params.task_id))

    async def result(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> dict[str, Any]:
        """`tasks/result`: blocks until there is one, as this dialect demands."""
        call = await self._desk.call_of(ctx)
        followed = await cross(following.find, call, params.task_id)
        while not followed.has_ended:
            followed = await cross(following.wait_for_end, call, followed, _SLICE_S, patient="wait")
        found = await cross(following.result, call, followed)
        return {**found, "_meta": {RELATED: {"taskId": followed.name}}}

    async def cancel(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> dict[str, Any]:
        """`tasks/cancel`: ends it with everything it started."""
        call = await self._desk.call_of(ctx)
        followed = await cross(following.find, call, params.task_id)
        if followed.has_ended:
            raise MCPError(code=INVALID_PARAMS, message=f"Cannot cancel task: already {_status(followed)}")
        return view(await cross(following.end, call, followed, patient="cancel"))

    async def list(self, ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams) -> dict[str, Any]:
        """`tasks/list`: those of the caller's project, newest first."""
        call = await self._desk.call_of(ctx)
        start = _start(params.cursor)
        found = await cross(_page, call, start)
        more = {"nextCursor": str(start + _PAGE)} if len(found) > _PAGE else {}
        return {"tasks": [view(each) for each in found[:_PAGE]], **more}

    async def _find(self, ctx: ServerRequestContext[Any, Any], name: str) -> Followed:
        return await cross(following.find, await self._desk.call_of(ctx), name)


def view(followed: Followed) -> dict[str, Any]:
    """A task in this dialect's words; one that failed is `failed` here."""
    return {
        "taskId": followed.name,
        "status": _status(followed),
        "statusMessage": followed.words(),
        **followed.times(),
        "ttl": followed.ttl_ms(),
        "pollInterval": following.POLL_MS,
    }


def _status(followed: Followed) -> str:
    if not followed.has_ended:
        return "working"
    if followed.task.state == "cancelled":
        return "cancelled"
    return "completed" if followed.succeeded else "failed"


def _start(cursor: str | None) -> int:
    """Where a page begins; a cursor is what `nextCursor` was."""
    if not cursor:
        return 0
    if len(cursor) > _LONGEST_CURSOR or not (cursor.isascii() and cursor.isdecimal()):
        raise MCPError(code=INVALID_PARAMS, message="Invalid cursor")
    return int(cursor)


def _page(call: Call, start: int) -> list[Followed]:
    selection = Selection(project=call.caller.project, limit=start + _PAGE + 1)
    secret = read_secret(call.home)
    tasks = select(call.home, selection, adopt)[start:]
    return [following.Followed(task=task, name=sealed(secret, task.id)) for task in tasks]

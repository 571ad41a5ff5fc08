"""MCP tasks of the revision 2025-11-25. A client asks for one with `params.task`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND

from outlive.domain.errors import UserError
from outlive.ledger.contract import Selection
from outlive.mcp.answer import error_answer
from outlive.mcp.dispatch import as_ours
from outlive.mcp.tasks import followed_task
from outlive.mcp.threads import cross
from outlive.sdk.outlive import adopt
from outlive.service.tasks.read import select

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from outlive.mcp.dispatch import Dispatcher
    from outlive.mcp.tasks.extension_2026_07 import TaskParams
    from outlive.mcp.tasks.followed_task import Followed
    from outlive.mcp.tools.tool import Call

VERSIONS = frozenset({"2025-11-25"})
RELATED = "io.modelcontextprotocol/related-task"
_SLICE_S = 45.0
_PAGE = 50
_LONGEST_CURSOR = 12


def capability() -> types.ServerTasksCapability:
    """Return the part of the server's capabilities that announces tasks."""
    return types.ServerTasksCapability.model_validate({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}})


class Tasks2025:
    """The methods for tasks of this revision, and a handler for `tools/call`."""

    def __init__(self, desk: Dispatcher) -> None:
        self._desk = desk

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Reply to `tools/call` with an MCP task if the client asks for a task.

        This is a middleware, because the MCP SDK does not let a normal handler reply with a task.
        """
        params = ctx.params or {}
        if ctx.method != "tools/call" or ctx.protocol_version not in VERSIONS:
            return await call_next(ctx)
        tool = self._desk.tools.get(str(params.get("name")))
        wanted = params.get("task")
        if wanted is None:
            if tool is not None and tool.task_support == "required":
                raise MCPError(
                    code=METHOD_NOT_FOUND, message=f"{tool.name} can only be called as a task: add params.task"
                )
            return await call_next(ctx)
        if tool is None or tool.launch is None:
            raise MCPError(code=METHOD_NOT_FOUND, message="this tool cannot be called as a task: leave out params.task")
        if not isinstance(wanted, dict) or not isinstance(params.get("arguments") or {}, dict):
            raise MCPError(code=INVALID_PARAMS, message="task and arguments must be objects")
        keep = wanted.get("ttl")
        if keep is not None and (not isinstance(keep, int) or keep < 0):
            raise MCPError(code=INVALID_PARAMS, message="task.ttl must be a number of milliseconds")
        call = await self._desk.call_of(ctx)
        try:
            given = tool.check(params.get("arguments"))
            followed = await cross(followed_task.begin, call, tool, given, keep)
            await self._desk.reservations.asked(followed.task.id, followed.poll_s)
        except Exception as error:
            # The client asked for a task. So it expects a task or a protocol error, but not an error as the result of
            # the tool.
            code = INVALID_PARAMS if isinstance(error, UserError) else INTERNAL_ERROR
            raise MCPError(code=code, message=error_answer(as_ours(error)).text) from error
        return {"task": view(followed)}

    async def get(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> dict[str, Any]:
        """Reply to `tasks/get` with the status of a task."""
        followed = await self._find(ctx, params.task_id)
        await self._desk.reservations.asked(followed.task.id, followed.poll_s)
        return view(followed)

    async def result(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> dict[str, Any]:
        """Reply to `tasks/result`, but only after the task has ended.

        This revision of the protocol requires this.
        """
        call = await self._desk.call_of(ctx)
        followed = await cross(followed_task.find, call, params.task_id)
        while not followed.has_ended:
            await self._desk.reservations.asked(followed.task.id, _SLICE_S)
            followed = await cross(followed_task.wait_for_end, call, followed, _SLICE_S, patient="wait")
        answer = await self._desk.read_result(call, followed)
        found = followed_task.wire_result(call, answer.but(is_error=not followed.succeeded))
        return {**found, "_meta": {RELATED: {"taskId": followed.name}}}

    async def cancel(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> dict[str, Any]:
        """Reply to `tasks/cancel`: end the task with every process that it started."""
        call = await self._desk.call_of(ctx)
        followed = await cross(followed_task.find, call, params.task_id)
        if followed.has_ended:
            status = followed.status(has_failed=not followed.succeeded)
            raise MCPError(code=INVALID_PARAMS, message=f"Cannot cancel task: already {status}")
        return view(await cross(followed_task.end, call, followed, patient="cancel"))

    async def list(self, ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams) -> dict[str, Any]:
        """Reply to `tasks/list` with the tasks of the caller's project, newest first."""
        call = await self._desk.call_of(ctx)
        start = _start(params.cursor)
        found = await cross(_page, call, start)
        more = {"nextCursor": str(start + _PAGE)} if len(found) > _PAGE else {}
        return {"tasks": [view(each) for each in found[:_PAGE]], **more}

    async def _find(self, ctx: ServerRequestContext[Any, Any], name: str) -> Followed:
        return await cross(followed_task.find, await self._desk.call_of(ctx), name)


def view(followed: Followed) -> dict[str, Any]:
    """Return the JSON of an MCP task in the form of this revision.

    The status is `failed` if the command failed.
    """
    return {
        **followed.view(has_failed=not followed.succeeded),
        "ttl": followed.ttl_ms(),
        "pollInterval": int(followed.poll_s * 1000),
    }


def _start(cursor: str | None) -> int:
    """Return the position of a page's first task in the list of tasks.

    `cursor` is the `nextCursor` of the page before, or None for the first page.
    """
    if not cursor:
        return 0
    if len(cursor) > _LONGEST_CURSOR or not (cursor.isascii() and cursor.isdecimal()):
        raise MCPError(code=INVALID_PARAMS, message="Invalid cursor")
    return int(cursor)


def _page(call: Call, start: int) -> list[Followed]:
    selection = Selection(project=call.caller.project, limit=start + _PAGE + 1)
    return [followed_task.followed(call, task) for task in select(call.home, selection, adopt)[start:]]

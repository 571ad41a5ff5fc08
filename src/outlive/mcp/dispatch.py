"""The calling of MCP tools: each call is checked, and runs in a thread."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from outlive.domain.errors import OutliveError
from outlive.mcp.answer import error_answer
from outlive.mcp.caller import without_session
from outlive.mcp.restore_ledger import with_restored
from outlive.mcp.tasks import followed_task
from outlive.mcp.tasks.extension_2026_07 import TasksExtension
from outlive.mcp.tasks.reservations import Reservations
from outlive.mcp.threads import cross
from outlive.mcp.tools.tool import Call
from outlive.service.sessions.lineage import session_of_process, successor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp.server.context import HandlerResult, ServerRequestContext

    from outlive.bundle.home import Home
    from outlive.mcp.answer import Answer
    from outlive.mcp.caller import Caller, Callers
    from outlive.mcp.tasks.followed_task import Followed
    from outlive.mcp.tools.tool import Tool


class Dispatcher:
    """The part of an MCP server that receives the calls of tools and runs them."""

    def __init__(self, home: Home, environ: Mapping[str, str], callers: Callers, tools: Sequence[Tool]) -> None:
        self._home = home
        self._environ = environ
        self._callers = callers
        self._extension = TasksExtension(self)
        self.reservations = Reservations(home)
        self.tools = {tool.name: tool for tool in tools}

    async def call_of(self, ctx: ServerRequestContext[Any, Any]) -> Call:
        """Return a description of a tool call: its caller, and the state directory."""
        return await self._call(await self._callers.of(ctx))

    async def _call(self, caller: Caller) -> Call:
        if caller.session is None and caller.process is not None:
            # The client does not name its session. But its hooks may have recorded which session this process has.
            found = await cross(session_of_process, self._home, caller.process, caller.project)
            caller = caller.but(session=found)
        if caller.session is None:
            caller = caller.but(session=caller.task_session)
        if caller.session is not None:
            # The client named its session when it started this server. It may have begun another session since then.
            caller = caller.but(session=await cross(successor, self._home, caller.session, caller.project))
        return Call(home=self._home, caller=caller, environ=self._environ)

    async def read_result(self, call: Call, followed: Followed) -> Answer:
        """Return the result of an ended task, and record that it was delivered."""
        task, attempt = followed.task.id, followed.task.current.number
        is_first = not self.reservations.has_delivered(task, attempt)
        answer = await cross(partial(followed_task.result, is_first=is_first), call, followed)
        self.reservations.deliver(task, attempt)
        return answer

    async def list_tools(self, _: object, __: object) -> types.ListToolsResult:
        """Reply to the request `tools/list`."""
        return types.ListToolsResult(tools=[tool.definition() for tool in self.tools.values()])

    async def call_tool(
        self, ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> HandlerResult:
        """Reply to the request `tools/call`. An error of the tool is a normal reply.

        Raises `MCPError` if there is no tool with the requested name.
        """
        tool = self.tools.get(params.name)
        if tool is None:
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown tool: {params.name}")
        wants_task = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS and self._extension.wants_task(ctx, tool)
        caller = await self._callers.of(ctx, params.arguments)
        try:
            call, given = await self._call(caller), tool.check(without_session(caller, params.arguments))
            if wants_task:
                return await self._extension.begin(call, tool, given)
            answer = await cross(tool.act, call, given, patient=tool.name if tool.is_patient else None)
        except Exception as error:  # noqa: BLE001 - the client must get a reply, even if Outlive has a bug
            answer = error_answer(as_ours(error))
        return with_restored(answer).result(with_document=caller.wants_documents)


def as_ours(error: Exception) -> OutliveError:
    """Return any error as an `OutliveError`, so that each error has a hint."""
    if isinstance(error, OutliveError):
        return error
    if isinstance(error, OSError):
        return OutliveError(f"the system refused: {error}", "check open files, memory and disk, then try again")
    return OutliveError(
        f"unexpected {type(error).__name__}: {error}", "this is a defect of Outlive; try the same on the command line"
    )

"""Where calls of tools arrive: found, checked, carried out in a thread, answered; errors in two lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from outlive.domain.errors import OutliveError
from outlive.mcp.crossing import cross
from outlive.mcp.sessions import without_session
from outlive.mcp.tasks_extension import TasksExtension
from outlive.mcp.tools.tool import Call
from outlive.mcp.words import error_answer
from outlive.service.sessions import session_of_process, successor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp.server.context import HandlerResult, ServerRequestContext

    from outlive.bundle.home import Home
    from outlive.mcp.sessions import Caller, Callers
    from outlive.mcp.tools.tool import Tool


class Desk:
    """The tools of one server, and for whom they are called."""

    def __init__(self, home: Home, environ: Mapping[str, str], callers: Callers, tools: Sequence[Tool]) -> None:
        self._home = home
        self._environ = environ
        self._callers = callers
        self._extension = TasksExtension(self)
        self.tools = {tool.name: tool for tool in tools}

    async def call_of(self, ctx: ServerRequestContext[Any, Any]) -> Call:
        """Who calls, and with which state directory."""
        return await self._call(await self._callers.of(ctx))

    async def _call(self, caller: Caller) -> Call:
        if caller.session is None and caller.process is not None:
            # What a client does not say, its hooks have recorded.
            found = await cross(session_of_process, self._home, caller.process, caller.project)
            caller = caller.but(session=found)
        elif caller.session is not None:
            # A client names a session when it starts us, and may have begun another one since.
            caller = caller.but(session=await cross(successor, self._home, caller.session, caller.project))
        return Call(home=self._home, caller=caller, environ=self._environ)

    async def list_tools(self, _: object, __: object) -> types.ListToolsResult:
        """`tools/list`."""
        return types.ListToolsResult(tools=[tool.definition() for tool in self.tools.values()])

    async def call_tool(
        self, ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> HandlerResult:
        """`tools/call`: what the tool answers; what the caller can mend is an answer, too."""
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
        except Exception as error:  # noqa: BLE001 - a defect of ours is told as the others are
            answer = error_answer(as_ours(error))
        return answer.result(with_document=caller.wants_documents)


def as_ours(error: Exception) -> OutliveError:
    """Any error as one that has a hint."""
    if isinstance(error, OutliveError):
        return error
    if isinstance(error, OSError):
        return OutliveError(f"the system refused: {error}", "check open files, memory and disk, then try again")
    return OutliveError(
        f"unexpected {type(error).__name__}: {error}", "a defect of Outlive; try it on the command line"
    )

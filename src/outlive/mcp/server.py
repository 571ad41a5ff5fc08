"""The MCP server: tools, resources and tasks, for old and new protocol versions."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from outlive import __version__
from outlive.ledger.completeness import restore_by
from outlive.mcp.caller import CODEX_SANDBOX, Callers
from outlive.mcp.dispatch import Dispatcher
from outlive.mcp.resources import Resources
from outlive.mcp.restore_ledger import restore
from outlive.mcp.tasks import extension_2026_07, revision_2025_11
from outlive.mcp.tasks.extension_2026_07 import TaskParams, TasksExtension, UpdateParams
from outlive.mcp.tasks.revision_2025_11 import Tasks2025
from outlive.mcp.tools.catalogue import TOOLS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from anyio.abc import TaskGroup
    from mcp.server.context import ServerRequestContext

    from outlive.bundle.home import Home
    from outlive.mcp.tools.tool import Tool

    Method = Callable[[ServerRequestContext[Any, Any], Any], Awaitable[dict[str, Any]]]

INSTRUCTIONS = """\
Outlive runs background tasks that survive this session, and reports each ending once.
Use Outlive for everything that takes longer than a minute (builds, tests, servers, downloads) instead of `&`, nohup \
or a background shell. Launch a task with `run` (or `outlive run -- CMD` in the shell), and go on working. Read \
`inbox` when you are idle. Call `wait` only if you cannot go on without the result. When a session begins or was \
compacted, read `hand_off` first. Before you finish, call `gate`. Never say that a task succeeded before `result` \
has shown it."""


class OutliveServer(Server[Any]):
    """The server class of the MCP SDK, extended by Outlive's capabilities."""

    def get_capabilities(
        self, *given: Any, protocol_version: str | None = None, **named: Any
    ) -> types.ServerCapabilities:
        """Return the server's capabilities for a version of the protocol.

        In old versions, tasks are part of the protocol. In new versions, tasks are an extension. The server does not
        announce changes of its lists of tools and resources.
        """
        found = super().get_capabilities(*given, protocol_version=protocol_version, **named)
        is_modern = protocol_version in MODERN_PROTOCOL_VERSIONS
        resources = types.ResourcesCapability(subscribe=True, list_changed=False)
        return found.model_copy(
            update={
                "tools": types.ToolsCapability(list_changed=False),
                "resources": resources,
                "tasks": None if is_modern else revision_2025_11.capability(),
                "extensions": {extension_2026_07.EXTENSION: {}} if is_modern else None,
                "experimental": {CODEX_SANDBOX: {}},
            }
        )


@asynccontextmanager
async def _lifespan(_: Server[Any]) -> AsyncIterator[TaskGroup]:
    """Yield the task group for a server's notifications, and cancel it at the end."""
    async with anyio.create_task_group() as group:
        yield group
        group.cancel_scope.cancel()


def build_server(
    home: Home,
    environ: Mapping[str, str],
    directory: str,
    *,
    is_distant: bool = False,
    tools: Sequence[Tool] = TOOLS,
) -> OutliveServer:
    """Return an MCP server with Outlive's tools, resources and tasks.

    `directory` is used for a caller that does not name its own directory.
    """
    restore_by(restore)
    callers = Callers(environ, directory, is_distant=is_distant)
    desk = Dispatcher(home, environ, callers, tools)
    resources = Resources(desk)
    server = OutliveServer(
        "outlive",
        version=__version__,
        title="Outlive",
        instructions=INSTRUCTIONS,
        lifespan=_lifespan,
        get_tool_input_schema=lambda name: desk.tools[name].schema if name in desk.tools else None,
        on_list_tools=desk.list_tools,
        on_call_tool=desk.call_tool,  # type: ignore[arg-type]  # the SDK's types do not allow a task as the result
        on_list_resources=resources.list,
        on_list_resource_templates=resources.templates,
        on_read_resource=resources.read,
        on_subscribe_resource=resources.subscribe,
        on_unsubscribe_resource=resources.unsubscribe,
        on_subscriptions_listen=resources.listen,
    )
    server.add_notification_handler("notifications/roots/list_changed", types.NotificationParams, callers.roots_changed)
    _add_tasks(server, desk)
    return server


def _add_tasks(server: OutliveServer, desk: Dispatcher) -> None:
    """Register the methods for tasks, of both protocol revisions that have tasks."""
    old, new = Tasks2025(desk), TasksExtension(desk)
    server.middleware.append(old)
    server.add_request_handler("tasks/get", TaskParams, _by_revision(old.get, new.get))
    server.add_request_handler("tasks/cancel", TaskParams, _by_revision(old.cancel, new.cancel))
    server.add_request_handler("tasks/result", TaskParams, _by_revision(old.result, None))
    server.add_request_handler("tasks/list", types.PaginatedRequestParams, _by_revision(old.list, None))
    server.add_request_handler("tasks/update", UpdateParams, _by_revision(None, new.update))


def _by_revision(old: Method | None, new: Method | None) -> Method:
    async def route(ctx: ServerRequestContext[Any, Any], params: Any) -> dict[str, Any]:
        is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        method = new if is_modern else old if ctx.protocol_version in revision_2025_11.VERSIONS else None
        if method is None:
            raise MCPError(code=METHOD_NOT_FOUND, message="Method not found", data=ctx.method)
        return await method(ctx, params)

    return route

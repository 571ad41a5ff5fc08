"""The resources of the MCP server: the output of each task of a project."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import mcp_types as types
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated, ServerEvent
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from outlive.domain.errors import OutliveError
from outlive.ledger.contract import Selection
from outlive.mcp.answer import harmless, task_line
from outlive.mcp.output_watch import watch
from outlive.mcp.threads import cross
from outlive.mcp.tools.visible_tasks import own_task
from outlive.sdk.outlive import adopt
from outlive.service.clock import utc_now
from outlive.service.tasks.read import files_of, select, tail_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anyio.abc import TaskGroup
    from mcp.server.context import ServerRequestContext

    from outlive.mcp.dispatch import Dispatcher
    from outlive.mcp.tools.tool import Call

    Context = ServerRequestContext[TaskGroup, Any]

Found = TypeVar("Found")
_log = logging.getLogger(__name__)
TEMPLATE = "outlive://task/{id}/output"
_PREFIX, _SUFFIX = "outlive://task/", "/output"
_TEXT = "text/plain"
_LISTED = 50
_MOST = 64 << 10
_NOT_FOUND_ONCE = -32002  # up to the revision 2025-11-25, the protocol had this code for an unknown resource


class Resources:
    """The MCP server's methods for resources. A resource is the output of a task."""

    def __init__(self, desk: Dispatcher) -> None:
        self._desk = desk
        self._watched: dict[tuple[str, str], anyio.CancelScope] = {}

    async def list(self, ctx: Context, _: object) -> types.ListResourcesResult:
        """Reply to `resources/list` with the newest tasks."""
        return types.ListResourcesResult(resources=await cross(_listed, await self._desk.call_of(ctx)))

    async def templates(self, _: Context, __: object) -> types.ListResourceTemplatesResult:
        """Reply to `resources/templates/list`."""
        template = types.ResourceTemplate(
            name="task-output",
            title="Output of a task",
            uri_template=TEMPLATE,
            description="The end of what a task has written so far. Secrets are masked.",
            mime_type=_TEXT,
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """Reply to `resources/read` with the end of a task's output, at most 64 KiB."""
        uri = str(params.uri)
        text = await self._of_task(ctx, uri, _read)
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=_TEXT, text=text)])

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Reply to `resources/subscribe`, in versions of the protocol before 2026-07-28.

        A subscription to a task that does not exist is refused. Otherwise, the client would wait forever for a change.
        """
        uri = str(params.uri)
        await self._of_task(ctx, uri, own_task)
        await self.unsubscribe(ctx, types.UnsubscribeRequestParams(uri=params.uri))
        self._watched[_key(ctx, uri)] = await self._watch(ctx, uri, partial(ctx.session.send_resource_updated, uri))
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        """Reply to `resources/unsubscribe`."""
        scope = self._watched.pop(_key(ctx, str(params.uri)), None)
        if scope is not None:
            scope.cancel()
        return types.EmptyResult()

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Reply to `subscriptions/listen` of 2026-07-28, until the client stops listening."""
        bus, scopes = PatientBus(), []
        try:
            for uri in params.notifications.resource_subscriptions or ():
                scope = await self._watch(ctx, uri, partial(bus.publish, ResourceUpdated(uri)))
                scopes.append(scope)  # append it now, so that it is cancelled if the next one cannot be started
            return await ListenHandler(bus)(ctx, params)
        finally:
            for scope in scopes:
                scope.cancel()

    async def _of_task(self, ctx: Context, uri: str, ask: Callable[[Call, str], Found]) -> Found:
        """Return what `ask` returns for the task that a URI names.

        Raises `MCPError` if there is no such task, or if the caller may not see it.
        """
        try:
            return await cross(ask, await self._desk.call_of(ctx), task_of(uri))
        except OutliveError as error:
            code = INVALID_PARAMS if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else _NOT_FOUND_ONCE
            raise MCPError(code=code, message=f"Resource not found: {error.message}", data={"uri": uri}) from None

    async def _watch(self, ctx: Context, uri: str, notify: Callable[[], Awaitable[None]]) -> anyio.CancelScope:
        """Start to notify a client when a task's output changes.

        Returns the cancel scope that ends this. When the function returns, no further change can be missed.
        """
        call, scope, ready = await self._desk.call_of(ctx), anyio.CancelScope(), anyio.Event()

        async def follow() -> None:
            with scope:
                try:
                    await watch(call, task_of(uri), notify, ready.set)
                except Exception as error:  # noqa: BLE001 - a failed notification must not end the server
                    # The caller may not see the task, or the client has disconnected. In both cases, no notification is
                    # needed.
                    _log.debug("no longer watching %s: %r", uri, error)
            ready.set()

        ctx.lifespan_context.start_soon(follow)
        await ready.wait()
        return scope


class PatientBus(InMemorySubscriptionBus):
    """An event bus that keeps events until the first listener subscribes.

    Without this, a change just before the subscription would be lost.
    """

    def __init__(self) -> None:
        super().__init__()
        self._early: list[ServerEvent] | None = []

    async def publish(self, event: ServerEvent) -> None:
        """Send an event to the listeners, or keep it until the first listener subscribes."""
        if self._early is not None:
            self._early.append(event)
        await super().publish(event)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Send the kept events to a new listener, and then add the listener."""
        early, self._early = self._early, None
        for event in early or ():
            listener(event)
        return super().subscribe(listener)


def uri_of(task: str) -> str:
    """Return the URI under which a client finds a task's output."""
    return f"{_PREFIX}{task}{_SUFFIX}"


def task_of(uri: str) -> str:
    """Return the id of the task in the URI of a task's output.

    For any other URI, return an empty string, which is not the id of a task.
    """
    is_ours = uri.startswith(_PREFIX) and uri.endswith(_SUFFIX)
    return uri[len(_PREFIX) : -len(_SUFFIX)] if is_ours else ""


def _listed(call: Call) -> list[types.Resource]:
    now = utc_now()
    return [
        types.Resource(
            name=task.id,
            title=f"Output of {task.id}",
            uri=uri_of(task.id),
            description=harmless(task_line(task, now)),
            mime_type=_TEXT,
        )
        for task in select(call.home, Selection(project=call.caller.project, limit=_LISTED), adopt)
    ]


def _read(call: Call, task_id: str) -> str:
    task = own_task(call, task_id)
    return str(harmless(tail_text(files_of(call.home, task), _MOST)))


def _key(ctx: Context, uri: str) -> tuple[str, str]:
    """Return the key under which a client's subscription to a URI is stored."""
    return ("" if ctx.request is None else ctx.request.headers.get("mcp-session-id", ""), uri)

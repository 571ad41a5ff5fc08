"""Resources: the output of each task of the caller's project, with word of its changes."""

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

from outlive.client.sdk import adopt
from outlive.domain.errors import OutliveError
from outlive.ledger.contract import Selection
from outlive.mcp.crossing import cross
from outlive.mcp.tools.scope import own_task
from outlive.mcp.watching import watch
from outlive.mcp.words import encodable, task_line
from outlive.service.clock import utc_now
from outlive.service.view import files_of, select, tail_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anyio.abc import TaskGroup
    from mcp.server.context import ServerRequestContext

    from outlive.mcp.desk import Desk
    from outlive.mcp.tools.tool import Call

    Context = ServerRequestContext[TaskGroup, Any]

Found = TypeVar("Found")
_log = logging.getLogger(__name__)
TEMPLATE = "outlive://task/{id}/output"
_PREFIX, _SUFFIX = "outlive://task/", "/output"
_TEXT = "text/plain"
_LISTED = 50
_MOST = 64 << 10
_NOT_FOUND_ONCE = -32002  # until 2025-11-25


class Resources:
    """The outputs as resources of one server."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._watched: dict[tuple[str, str], anyio.CancelScope] = {}

    async def list(self, ctx: Context, _: object) -> types.ListResourcesResult:
        """`resources/list`: the newest."""
        return types.ListResourcesResult(resources=await cross(_listed, await self._desk.call_of(ctx)))

    async def templates(self, _: Context, __: object) -> types.ListResourceTemplatesResult:
        """`resources/templates/list`."""
        template = types.ResourceTemplate(
            name="task-output",
            title="Output of a task",
            uri_template=TEMPLATE,
            description="The end of what a task has written so far, secrets masked.",
            mime_type=_TEXT,
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """`resources/read`: the end of it, as much as a model can use."""
        uri = str(params.uri)
        text = await self._of_task(ctx, uri, _read)
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=_TEXT, text=text)])

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """`resources/subscribe` of the handshake era; nobody waits for word of what is not there."""
        uri = str(params.uri)
        await self._of_task(ctx, uri, own_task)
        await self.unsubscribe(ctx, types.UnsubscribeRequestParams(uri=params.uri))
        self._watched[_key(ctx, uri)] = await self._watch(ctx, uri, partial(ctx.session.send_resource_updated, uri))
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        """`resources/unsubscribe`."""
        scope = self._watched.pop(_key(ctx, str(params.uri)), None)
        if scope is not None:
            scope.cancel()
        return types.EmptyResult()

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """`subscriptions/listen` of 2026-07-28: for as long as the client listens, and to nobody else."""
        bus, scopes = PatientBus(), []
        try:
            for uri in params.notifications.resource_subscriptions or ():
                scope = await self._watch(ctx, uri, partial(bus.publish, ResourceUpdated(uri)))
                scopes.append(scope)  # one by one: those that were begun are ended, whatever becomes of the next
            return await ListenHandler(bus)(ctx, params)
        finally:
            for scope in scopes:
                scope.cancel()

    async def _of_task(self, ctx: Context, uri: str, ask: Callable[[Call, str], Found]) -> Found:
        """What is found of the task that an address names; if there is none for this caller, the error says so."""
        try:
            return await cross(ask, await self._desk.call_of(ctx), task_of(uri))
        except OutliveError as error:
            code = INVALID_PARAMS if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else _NOT_FOUND_ONCE
            raise MCPError(code=code, message=f"Resource not found: {error.message}", data={"uri": uri}) from None

    async def _watch(self, ctx: Context, uri: str, tell: Callable[[], Awaitable[None]]) -> anyio.CancelScope:
        """Watch beside the request; returns when no change can escape us any more."""
        call, scope, ready = await self._desk.call_of(ctx), anyio.CancelScope(), anyio.Event()

        async def follow() -> None:
            with scope:
                try:
                    await watch(call, task_of(uri), tell, ready.set)
                except Exception as error:  # noqa: BLE001 - one watch must not end the server
                    # No such task for this caller, or nobody is there any more: then there is nothing to tell.
                    _log.debug("no longer watching %s: %r", uri, error)
            ready.set()

        ctx.lifespan_context.start_soon(follow)
        await ready.wait()
        return scope


class PatientBus(InMemorySubscriptionBus):
    """Keeps for the first who listens what was told before; it is ours before it is the listener's."""

    def __init__(self) -> None:
        super().__init__()
        self._early: list[ServerEvent] | None = []

    async def publish(self, event: ServerEvent) -> None:
        """Tell who listens, or keep it."""
        if self._early is not None:
            self._early.append(event)
        await super().publish(event)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Somebody listens."""
        early, self._early = self._early, None
        for event in early or ():
            listener(event)
        return super().subscribe(listener)


def uri_of(task: str) -> str:
    """The address of a task's output."""
    return f"{_PREFIX}{task}{_SUFFIX}"


def task_of(uri: str) -> str:
    """The task of an address; empty if it is none of ours, which no task is called."""
    is_ours = uri.startswith(_PREFIX) and uri.endswith(_SUFFIX)
    return uri[len(_PREFIX) : -len(_SUFFIX)] if is_ours else ""


def _listed(call: Call) -> list[types.Resource]:
    now = utc_now()
    return [
        types.Resource(
            name=task.id,
            title=f"Output of {task.id}",
            uri=uri_of(task.id),
            description=encodable(task_line(task, now)),
            mime_type=_TEXT,
        )
        for task in select(call.home, Selection(project=call.caller.project, limit=_LISTED), adopt)
    ]


def _read(call: Call, task_id: str) -> str:
    task = own_task(call, task_id)
    return str(encodable(tail_text(files_of(call.home, task), _MOST)))


def _key(ctx: Context, uri: str) -> tuple[str, str]:
    """Whose subscription to what it is."""
    return ("" if ctx.request is None else ctx.request.headers.get("mcp-session-id", ""), uri)

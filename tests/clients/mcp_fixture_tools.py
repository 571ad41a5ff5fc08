"""The tools, resources and prompts that the conformance suite expects of a server.

This module adds them to Outlive's server. A tool that runs for a while launches a task of Outlive, whose shell command
takes the place of the tool's work.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, Field

from outlive.domain.errors import UserError
from outlive.mcp.answer import Answer
from outlive.mcp.resources import uri_of
from outlive.mcp.tasks.extension_2026_07 import TaskParams, UpdateParams
from outlive.mcp.tools.tool import Arguments, Call, Tool
from outlive.sdk.outlive import Outlive

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from mcp.server.context import HandlerResult, ServerRequestContext
    from mcp.server.lowlevel.server import Server

    Context = ServerRequestContext[Any, Any]
    Play = Callable[[Context], Awaitable[HandlerResult]]
    Answering = Callable[[Context, Any], Awaitable[HandlerResult]]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=="
SCHEMA_2020 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"city": {"type": "string"}}}},
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


class Anything(Arguments):
    """The arguments of the suite's tools, of which any may be present."""

    seconds: float = 0
    label: str = ""
    filename: str = ""
    name: str = ""
    user_name: str = ""
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = ""


def _launching(command: Callable[[Anything], str | list[str]]) -> Callable[[Call, Anything, object], str]:
    def launch(call: Call, given: Anything, _: object = None) -> str:
        outlive = Outlive(session=call.caller.session, project=call.caller.project)
        return outlive.run(command(given), cwd=call.caller.directory).id

    return launch


def _tool(name: str, command: Callable[[Anything], str | list[str]] | None = None, **more: Any) -> Tool:
    said = {"test_simple_text": "This is a simple text response for testing."}

    def act(_: Call, given: Anything) -> Answer:
        if name == "test_error_handling":
            raise UserError("this tool intentionally returns an error", "it is for testing")
        return Answer(text=said.get(name, f"Hello, {given.name}!"), document={})

    launch = None if command is None else _launching(command)
    return Tool(
        name=name, title=name, description=f"{name} of the suite", takes=Anything, act=act, launch=launch, **more
    )


# Some tools of the suite ask the client a question, and a task of Outlive never asks one. So the command of such a
# tool's task waits until this module has received the client's answer.
UNTIL_ANSWERED = "while ! [ -e answered-$OUTLIVE_TASK ]; do sleep 0.05; done"
QUESTIONS = {"confirm_delete": 1, "multi_input": 2}

OURS = (
    _tool("greet"),
    _tool("test_simple_text"),
    _tool("test_error_handling"),
    _tool("test_x_mcp_header"),
    _tool("slow_compute", lambda given: f"sleep {given.seconds}; echo computed", task_support="optional"),
    _tool("failing_job", lambda _: "sleep 1; echo failed; exit 1", task_support="required"),
    _tool("protocol_error_job", lambda _: ["no-such-program-of-the-suite"], task_support="optional"),
    _tool("confirm_delete", lambda given: f"{UNTIL_ANSWERED}; echo {given.label}", task_support="optional"),
    _tool("multi_input", lambda given: f"{UNTIL_ANSWERED}; echo {given.label}", task_support="optional"),
    _tool("test_tool_with_task", lambda given: f"echo hello {given.user_name}", task_support="required"),
)


def _content(*blocks: types.ContentBlock) -> Play:
    async def play(_: Context) -> types.CallToolResult:
        return types.CallToolResult(content=list(blocks))

    return play


async def _progress(ctx: Context) -> types.CallToolResult:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100)
        await anyio.sleep(0.05)
    return types.CallToolResult(content=[_text("done")])


async def _missing_capability(ctx: Context) -> types.CallToolResult:
    if ctx.session.client_capabilities is None or ctx.session.client_capabilities.sampling is None:
        wanted: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(code=types.MISSING_REQUIRED_CLIENT_CAPABILITY, message="sampling is needed", data=wanted)
    return types.CallToolResult(content=[_text("it is there")])


async def _asks_first(_: Context) -> dict[str, Any]:
    return {"resultType": "input_required", "inputRequests": {"user_name": _question()}, "requestState": "first"}


def _question() -> dict[str, Any]:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    return {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": "Who is it?", "requestedSchema": schema},
    }


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


IMAGE = types.ImageContent(type="image", data=PIXEL, mime_type="image/png")
EMBEDDED = types.EmbeddedResource(
    type="resource",
    resource=types.TextResourceContents(uri="test://embedded", mime_type="text/plain", text="embedded"),
)
THEIRS: dict[str, Play] = {
    "test_image_content": _content(IMAGE),
    "test_audio_content": _content(types.AudioContent(type="audio", data=SOUND, mime_type="audio/wav")),
    "test_embedded_resource": _content(EMBEDDED),
    "test_multiple_content_types": _content(_text("several"), IMAGE, EMBEDDED),
    "test_tool_with_progress": _progress,
    "test_missing_capability": _missing_capability,
    "test_streaming_elicitation": _asks_first,
    "test_logging_tool": _content(_text("nothing was logged")),
    "json_schema_2020_12_tool": _content(_text("valid")),
}
RESOURCES = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PIXEL},
    "test://template/123/data": {"mimeType": "application/json", "text": '{"id": "123"}'},
}
WATCHED = "test://watched-resource"


class Asking:
    """The tasks that wait for the client's answers to questions.

    Outlive's server runs the tasks. This class adds the open questions to the JSON document of a task.
    """

    def __init__(self) -> None:
        self._open: dict[str, dict[str, Any]] = {}

    def begins(self, task: str, questions: int) -> None:
        """Add a new task that asks `number` questions."""
        self._open[task] = {f"question-{number}": _question() for number in range(questions)}

    def seen(self, found: dict[str, Any]) -> dict[str, Any]:
        """Return the result of `tasks/get` with the open questions of the task."""
        waiting = self._open.get(found["taskId"])
        return {**found, "status": "input_required", "inputRequests": waiting} if waiting else found

    def answered(self, task: str, names: Iterable[str]) -> None:
        """Remove answered questions of a task. When no question is open, let the task's command continue."""
        waiting = self._open.get(task, {})
        for name in names:
            waiting.pop(name, None)
        if not waiting:
            Path(f"answered-{task.partition('.')[0]}").touch()


class Beside:
    """The handlers of the suite's tools, resources and prompts.

    Every other request is passed on to Outlive's server.
    """

    def __init__(self, server: Server[Any]) -> None:
        self._asking = Asking()
        self._watched = uri_of(Outlive().run(["true"]).id)
        methods: dict[str, tuple[type[BaseModel], Answering]] = {
            "tools/call": (types.CallToolRequestParams, self.call_tool),
            "tools/list": (types.PaginatedRequestParams, self.list_tools),
            "resources/read": (types.ReadResourceRequestParams, self.read_resource),
            "resources/subscribe": (types.SubscribeRequestParams, partial(self.watch, "resources/subscribe")),
            "resources/unsubscribe": (types.UnsubscribeRequestParams, partial(self.watch, "resources/unsubscribe")),
            "tasks/get": (TaskParams, self.get_task),
            "tasks/update": (UpdateParams, self.update_task),
            # The caching scenario requests every kind of list. Without a list of prompts, it would stop too early.
            "prompts/list": (types.PaginatedRequestParams, self.list_prompts),
        }
        self._ours = {name: found.handler for name in methods if (found := server.get_request_handler(name))}
        for name, (params, answer) in methods.items():
            server.add_request_handler(name, params, answer)

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> HandlerResult:
        """Call a tool of the suite or of Outlive.

        If the task of the tool asks questions, it is added to `Asking`.
        """
        if params.name in THEIRS:
            return await THEIRS[params.name](ctx)
        if params.name == "test_tool_with_task":
            answers = (ctx.params or {}).get("inputResponses")
            if not answers:
                return await _asks_first(ctx)
            name = answers["user_name"]["content"]["name"]
            params = params.model_copy(update={"arguments": {"user_name": name}})
        answer = await self._ours["tools/call"](ctx, params)
        if params.name in QUESTIONS and isinstance(answer, dict):
            self._asking.begins(answer["taskId"], QUESTIONS[params.name])
        return answer

    async def list_tools(self, ctx: Context, params: object) -> HandlerResult:
        """List the tools of Outlive and of the suite."""
        found = await self._ours["tools/list"](ctx, params)
        assert isinstance(found, types.ListToolsResult)
        plain = {"type": "object", "properties": {}}
        theirs = [
            types.Tool(name=name, description=name, input_schema=SCHEMA_2020 if "schema" in name else plain)
            for name in THEIRS
        ]
        return found.model_copy(update={"tools": [*found.tools, *theirs]})

    async def read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> HandlerResult:
        """Return the content of a resource of the suite or of Outlive."""
        found = RESOURCES.get(str(params.uri))
        if found is None:
            return await self._ours["resources/read"](ctx, params)
        return types.ReadResourceResult.model_validate({"contents": [{"uri": str(params.uri), **found}]})

    async def watch(
        self, method: str, ctx: Context, params: types.SubscribeRequestParams | types.UnsubscribeRequestParams
    ) -> HandlerResult:
        """Subscribe to a resource or unsubscribe from it.

        If the suite names its own watched resource, the output of a task is watched instead.
        """
        uri = self._watched if str(params.uri) == WATCHED else params.uri
        return await self._ours[method](ctx, params.model_copy(update={"uri": uri}))

    async def get_task(self, ctx: Context, params: TaskParams) -> HandlerResult:
        """Return a task of Outlive with its open questions."""
        found = await self._ours["tasks/get"](ctx, params)
        assert isinstance(found, dict)
        return self._asking.seen(found)

    async def update_task(self, ctx: Context, params: UpdateParams) -> HandlerResult:
        """Pass the answers to Outlive's server, then remove the answered questions."""
        acknowledged = await self._ours["tasks/update"](ctx, params)
        self._asking.answered(params.task_id, params.input_responses)
        return acknowledged

    async def list_prompts(self, _: Context, __: object) -> HandlerResult:
        """Return an empty list of prompts."""
        return types.ListPromptsResult(prompts=[])

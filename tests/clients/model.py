"""A scripted model on loopback, which gives the replies that a test defines, in each client's API.

A test provides a function from a request to its replies. Every request is kept, so that a test can check the whole text
that the model received.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


@dataclass(frozen=True)
class Say:
    """A reply that is text."""

    text: str


@dataclass(frozen=True)
class Use:
    """A reply that calls a tool."""

    tool: str
    given: dict[str, Any]
    namespace: str = ""
    """The namespace in which Codex finds the tools of a server."""


@dataclass(frozen=True)
class Hang:
    """A delay before the model replies."""

    seconds: float = 60.0


@dataclass(frozen=True)
class Pause:
    """A delay between two replies. Only the API of Anthropic can send it."""

    seconds: float = 2.0


@dataclass(frozen=True)
class Fail:
    """An error that the model's server sends in place of a reply."""

    status: int
    message: str
    kind: str = "api_error"
    headers: dict[str, str] = field(default_factory=dict)


Reply = Say | Use | Hang | Pause | Fail


@dataclass(frozen=True)
class Asked:
    """One request that a client has sent to the model."""

    path: str
    body: Any
    texts: list[tuple[str, str]] = field(default_factory=list)
    """Each text of the request in order, with its origin: `user`, `result`, `model` or `system`."""

    @property
    def all(self) -> str:
        """The whole text of the request."""
        return "\n".join(text for _, text in self.texts)

    @property
    def last(self) -> str:
        """The text of the request that follows the model's last reply."""
        news: list[str] = []
        for who, text in reversed(self.texts):
            if who == "model":
                break
            news.insert(0, text)
        return "\n".join(news)

    @property
    def results(self) -> int:
        """The number of tool results in the request."""
        return sum(who == "result" for who, _ in self.texts)

    @property
    def has_tools(self) -> bool:
        """Whether the request offers tools to the model.

        A request of a conversation does. A request for a title, for example, does not.
        """
        return bool(self.body.get("tools"))

    def offers(self, use: Use) -> bool:
        """Return whether the request offers the tool of `use` to the model.

        Some clients send their first request before their MCP servers have started.
        """
        return f'"{use.namespace or use.tool}"' in json.dumps(self.body["tools"])


class Model:
    """The server of the scripted model. As a context manager, it runs in a thread."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answer: Callable[[Asked], list[Reply]] = lambda _: [Say("done")]
        self._server = _Server(("127.0.0.1", 0), _Exchange)
        self._server.model = self
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def reply(self, asked: Asked) -> list[Say | Use | Pause | Fail]:
        """Wait as long as the replies to a request demand, and return the replies."""
        if not asked.has_tools:
            return [Say("a title")]
        self.asked.append(asked)
        replies = self.answer(asked)
        for reply in replies:
            if isinstance(reply, Hang):
                time.sleep(reply.seconds)
        return [reply for reply in replies if not isinstance(reply, Hang)] or [Say("late")]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop the server, so that its address refuses connections."""
        self._server.shutdown()
        self._server.server_close()

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    model: Model


class _Exchange(BaseHTTPRequestHandler):
    """One HTTP request and its response."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        """Do not log requests on stderr."""

    def do_HEAD(self) -> None:
        """Answer a client that checks whether the server is up."""
        self._json({})

    def do_GET(self) -> None:
        """Answer a client that requests the list of models."""
        self._json({"data": [], "models": []})

    def do_POST(self) -> None:
        """Send the replies of the model."""
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        path = self.path.partition("?")[0]
        speak = _dialect(path)
        if path.endswith(("/count_tokens", ":countTokens")) or speak is None:
            self._json({"input_tokens": 10, "totalTokens": 10})
            return
        replies = self.server.model.reply(Asked(path, body, list(_texts(path, body))))
        failure = next((reply for reply in replies if isinstance(reply, Fail)), None)
        try:
            if failure is not None:
                error: dict[str, object] = {"message": failure.message, "type": failure.kind, "code": failure.kind}
                if path.endswith("Content"):  # the API of Google expects the name of the status in `status`
                    error = {"message": failure.message, "status": failure.kind, "code": failure.status}
                self._json({"type": "error", "error": error}, failure.status, failure.headers)
                return
            if path.endswith(":generateContent"):  # the only response that is not a stream
                self._json(next(speak(replies, body)))
            else:
                self._stream(speak(replies, body))
        except OSError:
            pass  # The test has killed the client, so nothing can be sent to it.

    def _json(self, value: object, status: int = 200, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        for name, each in headers.items():
            self.send_header(name, each)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _stream(self, events: Iterator[dict[str, Any]]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in events:
            name = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())
        self.close_connection = True


def _text(value: Any) -> str:
    """Return the text in a part of a message."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(map(_text, value))
    if isinstance(value, dict):
        for key in ("text", "content", "output", "functionResponse", "response"):
            if key in value:
                return _text(value[key])
        return json.dumps(value)
    return ""


def _texts(path: str, body: Any) -> Iterator[tuple[str, str]]:
    if path.endswith("/messages"):
        return _texts_of_messages(body)
    if path.endswith("/completions"):
        return _texts_of_completions(body)
    return _texts_of_responses(body) if path.endswith("/responses") else _texts_of_contents(body)


def _texts_of_messages(body: Any) -> Iterator[tuple[str, str]]:
    for message in body["messages"]:
        parts = message["content"] if isinstance(message["content"], list) else [message["content"]]
        for part in parts:
            kind = part.get("type") if isinstance(part, dict) else None
            who = {"assistant": "model"}.get(message["role"], message["role"])
            yield ("result" if kind == "tool_result" else who), _text(part)


def _texts_of_responses(body: Any) -> Iterator[tuple[str, str]]:
    for item in body["input"]:
        kind = item.get("type", "message")
        if kind == "message":
            who = {"assistant": "model", "developer": "system"}.get(item["role"], item["role"])
            yield who, _text(item["content"])
        elif kind.endswith("_output"):
            yield "result", _text(item["output"])
        else:
            yield "model", json.dumps(item)


def _texts_of_contents(body: Any) -> Iterator[tuple[str, str]]:
    for message in body["contents"]:
        for part in message["parts"]:
            is_result = "functionResponse" in part
            yield ("result" if is_result else message["role"]), _text(part)


def _texts_of_completions(body: Any) -> Iterator[tuple[str, str]]:
    for message in body["messages"]:
        calls = [json.dumps(call) for call in message.get("tool_calls") or ()]
        who = {"assistant": "model", "tool": "result"}.get(message["role"], message["role"])
        yield who, "\n".join([_text(message.get("content")), *calls])


def _dialect(path: str) -> Callable[[list[Any], Any], Iterator[dict[str, Any]]] | None:
    if path.endswith("/messages"):
        return _anthropic
    if path.endswith("/responses"):
        return _responses
    if path.endswith("/completions"):
        return _completions
    return _gemini if "enerateContent" in path else None


def _anthropic(replies: list[Any], body: Any) -> Iterator[dict[str, Any]]:
    usage = {"input_tokens": 10, "output_tokens": 5}
    message = {"id": f"msg_{uuid4().hex}", "type": "message", "role": "assistant", "model": body["model"]}
    head = {**message, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield {"type": "message_start", "message": head}
    index = -1
    for reply in replies:
        if isinstance(reply, Pause):
            time.sleep(reply.seconds)
            continue
        index += 1
        if isinstance(reply, Say):
            block: dict[str, Any] = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": reply.text}
        else:
            block = {"type": "tool_use", "id": f"toolu_{uuid4().hex}", "name": reply.tool, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(reply.given)}
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    why = "tool_use" if any(isinstance(reply, Use) for reply in replies) else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": why, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}


def _responses(replies: list[Any], _: Any) -> Iterator[dict[str, Any]]:
    response = {"id": f"resp_{uuid4().hex}", "object": "response", "created_at": int(time.time()), "model": "scripted"}
    yield {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}
    items = []
    for index, reply in enumerate(replies):
        if isinstance(reply, Say):
            content = [{"type": "output_text", "text": reply.text, "annotations": []}]
            item = {"type": "message", "id": f"msg_{uuid4().hex}", "role": "assistant", "content": content}
        else:
            item = {
                "type": "function_call",
                "id": f"fc_{uuid4().hex}",
                "call_id": f"call_{uuid4().hex}",
                "name": reply.tool,
                "arguments": json.dumps(reply.given),
            }
            if reply.namespace:
                item["namespace"] = reply.namespace
        items.append({**item, "status": "completed"})
        yield {"type": "response.output_item.done", "output_index": index, "item": items[-1]}
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 15,
    }
    done = {**response, "status": "completed", "output": items, "usage": usage}
    yield {"type": "response.completed", "response": done}


def _completions(replies: list[Any], body: Any) -> Iterator[dict[str, Any]]:
    head = {"id": f"chatcmpl-{uuid4().hex}", "object": "chat.completion.chunk", "created": int(time.time())}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "model": body["model"], "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    calls = 0
    for reply in replies:
        if isinstance(reply, Say):
            yield chunk({"role": "assistant", "content": reply.text})
        else:
            function = {"name": reply.tool, "arguments": json.dumps(reply.given)}
            call = {"index": calls, "id": f"call_{uuid4().hex}", "type": "function", "function": function}
            yield chunk({"role": "assistant", "tool_calls": [call]})
            calls += 1
    yield chunk({}, "tool_calls" if calls else "stop")
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    yield {**head, "model": body["model"], "choices": [], "usage": usage}


def _gemini(replies: list[Any], _: Any) -> Iterator[dict[str, Any]]:
    parts = [
        {"text": reply.text} if isinstance(reply, Say) else {"functionCall": {"name": reply.tool, "args": reply.given}}
        for reply in replies
    ]
    yield {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 20_000, "candidatesTokenCount": 5, "totalTokenCount": 20_005},
    }

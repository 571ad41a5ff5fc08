"""Error replies to lines that are not valid messages.

The MCP SDK ignores a line with a lone surrogate (an escape for half of a character) and sends no reply. Without this
module, the client would wait until its timeout.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR
from pydantic import ValidationError

from outlive.domain.text.sanitize import is_encodable

if TYPE_CHECKING:
    from typing import Self

    from mcp.shared._stream_protocols import ReadStream, WriteStream


class Answering:
    """The stream of a client's messages. It replies to an invalid one with an error."""

    def __init__(self, reads: ReadStream[SessionMessage | Exception], writes: WriteStream[SessionMessage]) -> None:
        self._reads = reads
        self._writes = writes

    @property
    def last_context(self) -> Any:
        """The context in which the message was sent. The MCP SDK reads this attribute."""
        return getattr(self._reads, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message of the client that is valid."""
        while isinstance(found := await self._reads.receive(), ValidationError):
            await self._writes.send(SessionMessage(refusal_of(found)))
        return found

    async def aclose(self) -> None:
        """Close the stream of messages."""
        await self._reads.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def refusal_of(error: ValidationError) -> types.JSONRPCError:
    """Return the error reply to a line that is not a valid message."""
    first = error.errors(include_url=False)[0]
    if first["type"] != "json_invalid":
        found = types.ErrorData(code=INVALID_REQUEST, message="Invalid Request: neither a request nor an answer")
        return types.JSONRPCError(jsonrpc="2.0", id=None, error=found)
    hint = "; a lone surrogate (half of a character) is not allowed" if "hex escape" in first["msg"] else ""
    found = types.ErrorData(code=PARSE_ERROR, message=f"Parse error: {first['msg']}{hint}")
    return types.JSONRPCError(jsonrpc="2.0", id=_id_in(first["input"]), error=found)


def _id_in(line: object) -> str | int | None:
    """Return the id of a request that the MCP SDK cannot read, or None without an id."""
    try:
        message = json.loads(line) if isinstance(line, str) else None
    except (ValueError, RecursionError):
        return None
    name = message.get("id") if isinstance(message, dict) else None
    if isinstance(name, str):
        return name if is_encodable(name) else None
    return name if isinstance(name, int) and not isinstance(name, bool) else None

"""Lines that are no message: answered, because whoever sent one waits for its answer.

The SDK reads JSON more strictly than JSON is: half of a character that takes two (a lone
surrogate) is none to it. It drops such a line without a word, and its sender waits until its patience ends.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR
from pydantic import ValidationError

from outlive.domain.text import is_encodable

if TYPE_CHECKING:
    from typing import Self

    from mcp.shared._stream_protocols import ReadStream, WriteStream


class Answering:
    """What a client sends, without what cannot be read, which is answered here."""

    def __init__(self, reads: ReadStream[SessionMessage | Exception], writes: WriteStream[SessionMessage]) -> None:
        self._reads = reads
        self._writes = writes

    @property
    def last_context(self) -> Any:
        """The sender's context, which the SDK asks for."""
        return getattr(self._reads, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """The next message."""
        while isinstance(found := await self._reads.receive(), ValidationError):
            await self._writes.send(SessionMessage(refusal_of(found)))
        return found

    async def aclose(self) -> None:
        """No more of them."""
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
    """What is wrong with a line, for whoever sent it."""
    first = error.errors(include_url=False)[0]
    if first["type"] != "json_invalid":
        found = types.ErrorData(code=INVALID_REQUEST, message="Invalid Request: neither a request nor an answer")
        return types.JSONRPCError(jsonrpc="2.0", id=None, error=found)
    hint = "; half of a character, a lone surrogate, cannot be taken" if "hex escape" in first["msg"] else ""
    found = types.ErrorData(code=PARSE_ERROR, message=f"Parse error: {first['msg']}{hint}")
    return types.JSONRPCError(jsonrpc="2.0", id=_id_in(first["input"]), error=found)


def _id_in(line: object) -> str | int | None:
    """The id of a request that only the SDK cannot read; None if nobody can."""
    try:
        message = json.loads(line) if isinstance(line, str) else None
    except (ValueError, RecursionError):
        return None
    name = message.get("id") if isinstance(message, dict) else None
    if isinstance(name, str):
        return name if is_encodable(name) else None
    return name if isinstance(name, int) and not isinstance(name, bool) else None

"""Steps that tests of the MCP server share.

The servers are real, and the SDK's client speaks both versions of the protocol.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import mcp_types as types
from mcp.client.client import Client
from mcp.client.extension import advertise
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from outlive.mcp.tasks.extension_2026_07 import EXTENSION
from tests.support import PATIENCE_S, SCRIPT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from mcp.client.extension import ClientExtension

    from tests.support import Bench

VERSIONS = {"legacy": "2025-11-25", "auto": "2026-07-28"}
ERAS = tuple(VERSIONS)
MAY_RUN = {"OUTLIVE_MCP_RUN": "on", "OUTLIVE_SESSION": "s-1"}
CODEX_FREE = {"x-codex-turn-metadata": {"session_id": "codex-session-1", "sandbox": "none"}}


class HttpServer:
    """A process of the MCP server over HTTP."""

    def __init__(self, bench: Bench, env: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            bench.command("mcp", "--http", "0", "--json"),
            env={**bench.env, **(env or {})},
            cwd=bench.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        said = json.loads(self.process.stdout.readline())
        self.url: str = said["url"]
        self.token_file: str | None = said["token_file"]

    @property
    def token(self) -> str:
        """The token in the server's token file."""
        assert self.token_file is not None
        return Path(self.token_file).read_text().strip()

    def end(self) -> None:
        """Kill the server at the end of the test."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@asynccontextmanager
async def over_stdio(
    bench: Bench,
    era: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    through: Sequence[str] = (),
    **options: Any,
) -> AsyncIterator[Client]:
    """Connect a client to a new server over stdio. `through` is a command that runs the server, and may be empty."""
    words = [*through, sys.executable, str(SCRIPT), "mcp"]
    server = StdioServerParameters(
        command=words[0],
        args=words[1:],
        env={**bench.env, **(MAY_RUN if env is None else env)},
        cwd=cwd or bench.project,
    )
    async with Client(server, mode=era, read_timeout_seconds=PATIENCE_S * 2, **options) as client:
        yield client


@asynccontextmanager
async def over_http(server: HttpServer, era: str, token: str | None = None, **options: Any) -> AsyncIterator[Client]:
    """Connect a client to a running server."""
    headers = {"Authorization": f"Bearer {token or server.token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S * 2) as http:
        transport = streamable_http_client(server.url, http_client=http)
        async with Client(transport, mode=era, read_timeout_seconds=PATIENCE_S * 2, **options) as client:
            yield client


def play(steps: Callable[[], Awaitable[None]]) -> None:
    """Run the steps of a test, and fail if they take too long."""

    async def in_time() -> None:
        with anyio.fail_after(PATIENCE_S * 4):
            await steps()

    anyio.run(in_time)


async def ask(client: Client, method: str, **params: Any) -> dict[str, Any]:
    """Send a request and return the raw result. The types of the SDK are not used."""
    request: dict[str, Any] = {"method": method, "params": params}
    options: dict[str, Any] = {}
    client.session._stamp(request, options)  # type: ignore[arg-type]
    if "taskId" in params:
        options.setdefault("headers", {})["mcp-name"] = params["taskId"]
    return await client.session._dispatcher.send_raw_request(method, request["params"], options)  # type: ignore[arg-type]


def text_of(result: types.CallToolResult) -> str:
    """Return the text of a tool's result."""
    first = result.content[0]
    assert isinstance(first, types.TextContent)
    return first.text


def document_of(result: types.CallToolResult) -> dict[str, Any]:
    """Return the JSON document of a tool's result, which must not be an error."""
    assert not result.is_error, text_of(result)
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def speaks_tasks() -> ClientExtension:
    """Return the extension by which a client of version 2026-07-28 says that it can follow tasks."""
    return advertise(EXTENSION)

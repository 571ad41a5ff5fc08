"""The functions with which the command line starts the MCP server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
from mcp.server.stdio import stdio_server

from outlive.domain.value import Value
from outlive.mcp.invalid_messages import Answering
from outlive.mcp.server import build_server
from outlive.mcp.server_secret import token_file

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping, MutableMapping

    from starlette.types import ASGIApp

    from outlive.bundle.home import Home


def serve_stdio(home: Home, environ: Mapping[str, str], directory: str) -> None:
    """Serve one client over stdin and stdout, until the client disconnects."""
    server = build_server(home, environ, directory)

    async def serve() -> None:
        async with stdio_server() as (reads, writes):
            await server.run(Answering(reads, writes), writes, server.create_initialization_options())

    anyio.run(serve)


class Opened(Value):
    """An HTTP server that accepts connections but does not reply to requests yet."""

    url: str
    token_file: str | None
    """The path of the file with the token. None if the token comes from the environment."""
    app: ASGIApp
    listening: socket.socket

    def serve(self) -> None:
        """Reply to requests until this process gets a signal to end."""
        from outlive.mcp.http import serve_http  # noqa: PLC0415 - imported here, because a server over stdio does not need HTTP

        serve_http(self.app, self.listening)


def open_http(home: Home, environ: MutableMapping[str, str], directory: str, port: int) -> Opened:
    """Listen on loopback, and return the server. It replies to requests later."""
    from outlive.mcp import http  # noqa: PLC0415 - imported here, because a server over stdio does not need HTTP

    is_given = http.TOKEN_VARIABLE in environ
    token = http.take_token(home, environ)
    listening = http.listen(port)
    server = build_server(home, environ, directory, is_distant=True)
    return Opened(
        url=http.url_of(listening),
        token_file=None if is_given else token_file(home),
        app=http.build_app(server, listening.getsockname()[1], token),
        listening=listening,
    )

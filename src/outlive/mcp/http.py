"""The MCP server over HTTP, only on loopback and only for callers with the token.

A web page in a browser can send requests to loopback, even under the page's own host name. So the headers Host and
Origin must name this server. Other users of this machine can also reach loopback, so a caller needs the token.
"""

from __future__ import annotations

import hmac
import socket
from typing import TYPE_CHECKING, Any

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import JSONResponse

from outlive.domain.errors import Unavailable, UserError
from outlive.mcp.server_secret import read_secret

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from mcp.server.lowlevel.server import Server
    from starlette.types import ASGIApp, Receive, Scope, Send

    from outlive.bundle.home import Home

ADDRESS = "127.0.0.1"
PATH = "/mcp"
TOKEN_VARIABLE = "OUTLIVE_MCP_TOKEN"  # noqa: S105 - this is the name of the variable, and not the token itself
_SHORTEST_TOKEN = 16


def listen(port: int) -> socket.socket:
    """Return a socket that listens on a port of loopback. Port 0 means any free port."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((ADDRESS, port))
        found.listen()  # from now on, the kernel lets callers wait instead of refusing them
    except OSError as error:
        found.close()
        raise Unavailable(
            f"port {port} cannot be used: {error.strerror}", "give another port, or 0 for any free port"
        ) from error
    return found


def url_of(listening: socket.socket) -> str:
    """Return the URL of the MCP server that listens on a socket."""
    return f"http://{ADDRESS}:{listening.getsockname()[1]}{PATH}"


def take_token(home: Home, environ: MutableMapping[str, str]) -> str:
    """Return the token that callers must send, and remove it from the environment.

    It comes from the environment, or otherwise from a file in the state directory. If it stayed in the environment,
    each task would inherit it.
    """
    given = environ.pop(TOKEN_VARIABLE, None)
    if given is not None and len(given) < _SHORTEST_TOKEN:
        raise UserError(
            f"{TOKEN_VARIABLE} is too short, so other users could guess the token",
            f"use at least {_SHORTEST_TOKEN} characters",
        )
    return given or read_secret(home)


def build_app(server: Server[Any], port: int, token: str) -> ASGIApp:
    """Return the ASGI app of the server, which first checks host, origin and token."""
    names = [f"{name}:{port}" for name in (ADDRESS, "localhost")]
    security = TransportSecuritySettings(allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names])
    return Guard(server.streamable_http_app(streamable_http_path=PATH, transport_security=security), token)


class Guard:
    """An ASGI app that checks whether a request has the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request with the token on to the server. Refuse others with status 401."""
        if scope["type"] == "http" and not self._is_known(Headers(scope=scope)):
            refused = JSONResponse(
                {"error": "a bearer token is needed"}, status_code=401, headers={"WWW-Authenticate": "Bearer"}
            )
            await refused(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_known(self, headers: Headers) -> bool:
        kind, _, shown = headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and hmac.compare_digest(shown.strip().encode(), self._token.encode())


def serve_http(app: ASGIApp, listening: socket.socket) -> None:
    """Serve requests until this process gets a signal to end."""
    config = uvicorn.Config(app, log_level="warning", ws="none", access_log=False, timeout_graceful_shutdown=1)
    anyio.run(uvicorn.Server(config).serve, [listening])

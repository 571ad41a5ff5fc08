"""The server for the MCP conformance suite: Outlive's server over HTTP, with the tools of the suite.

`python -m tests.clients.mcp_fixture PORT` starts the server. The suite cannot send a token, so this fixture adds the
token to each request. Apart from this, the server is the one that `outlive mcp --http` runs.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from outlive.bundle.home import open_home
from outlive.mcp import http
from outlive.mcp.server import build_server
from outlive.mcp.tools.catalogue import TOOLS
from tests.clients.mcp_fixture_tools import OURS, Beside

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class WithToken:
    """A web application that adds the token to each request, because the suite cannot send a token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._header = (b"authorization", f"Bearer {token}".encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on to the server, with the token in its headers."""
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], self._header]}
        await self._app(scope, receive, send)


def main() -> None:
    """Run the server until this process is killed."""
    home = open_home(os.environ)
    listening = http.listen(int(sys.argv[1]))
    server = build_server(home, os.environ, os.getcwd(), is_distant=True, tools=(*TOOLS, *OURS))
    Beside(server)
    token = http.take_token(home, os.environ)
    app = http.build_app(server, listening.getsockname()[1], token)
    sys.stdout.write(f"{http.url_of(listening)}\n")
    sys.stdout.flush()
    http.serve_http(WithToken(app, token), listening)


if __name__ == "__main__":
    main()

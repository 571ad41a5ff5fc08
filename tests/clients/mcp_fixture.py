"""A server for the conformance suite: ours, over HTTP, with the suite's own tools beside ours.

    python -m tests.clients.mcp_fixture PORT

The suite cannot show a token, so each request is given ours on its way in; everything behind that is
the server as `outlive mcp --http` has it.
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
    """Shows the token for whoever cannot."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._header = (b"authorization", f"Bearer {token}".encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], self._header]}
        await self._app(scope, receive, send)


def main() -> None:
    """Serve until we are killed."""
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

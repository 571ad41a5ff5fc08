"""`outlive mcp`: serve the commands as tools for a client that speaks MCP."""

from __future__ import annotations

import gc
import os
import sys

from outlive.cli import context
from outlive.cli.parser import Command, Given, Option, whole_number
from outlive.domain.errors import Unavailable

_LAST_PORT = 65535


def act(given: Given) -> int:
    """Serve until the client disconnects, or the process is asked to end."""
    home, directory = context.here(), context.directory(given.project)
    try:
        from outlive.mcp.start_server import open_http, serve_stdio
    except ImportError as error:
        raise Unavailable(
            f"the MCP server needs a package that is not installed: {error.name}", "pip install 'outlive[mcp]'"
        ) from error
    # The command line runs without garbage collection, because it lives for milliseconds. A server needs garbage
    # collection. The imported modules never become garbage, so freeze() excludes them.
    gc.freeze()
    gc.enable()
    if given.http is None:
        serve_stdio(home, os.environ, directory)
        return 0
    opened = open_http(home, os.environ, directory, given.http)
    if given.json:
        from outlive.cli.formatting import print_json

        print_json({"url": opened.url, "token_file": opened.token_file})
    else:
        print(f"{opened.url}\nbearer token: {opened.token_file or '$OUTLIVE_MCP_TOKEN'}")
    sys.stdout.flush()
    opened.serve()
    return 0


def _port(text: str) -> int:
    """Return a port's number; raise `ValueError` for a text that is no port."""
    number = whole_number(text)
    if number > _LAST_PORT:
        raise ValueError(text)
    return number


COMMAND = Command(
    name="mcp",
    summary="serve the commands as tools, for clients that speak MCP",
    usage="outlive mcp [options]",
    refuses_words=True,
    details=(
        "The server speaks on stdin and stdout with the client that starts it. With --http it listens on\n"
        "loopback, for callers that know its token. The tool `run` is refused unless the client's own\n"
        "shell is known to be unrestricted, or OUTLIVE_MCP_RUN=on is set. The server needs: pip install\n"
        "'outlive[mcp]'."
    ),
    options=(
        Option(name="--http", metavar="PORT", help="serve over HTTP on this port, 0 for any", parse=_port),
        Option(
            name="--project",
            metavar="DIR",
            takes="directory",
            help="the directory of callers that name none (default: the current one)",
        ),
    ),
    examples=(
        ("outlive mcp", "the command in a client's configuration"),
        ("outlive mcp --http 7777", "http://127.0.0.1:7777/mcp; the server prints the file that has the token"),
    ),
    act=act,
)

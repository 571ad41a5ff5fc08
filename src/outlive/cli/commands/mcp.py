"""`outlive mcp`: the MCP server, which offers the commands as tools."""

from __future__ import annotations

import gc
import os
import sys

from outlive.cli import context
from outlive.cli.parser import Command, Given, option, whole_number
from outlive.domain.errors import Unavailable

_LAST_PORT = 65535


def act(given: Given) -> int:
    """Run the server until the client disconnects or a signal ends this process."""
    home, directory = context.here(), context.directory(given.project)
    try:
        from outlive.mcp.start_server import open_http, serve_stdio
    except ImportError as error:
        raise Unavailable(
            f"the MCP server needs a package that is not installed: {error.name}", "pip install 'outlive[mcp]'"
        ) from error
    # Garbage collection is off in this program, because most commands exit after some milliseconds. A server runs for
    # long and needs it. `freeze` excludes the imported modules, which never become garbage.
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
    """Return the port number that a string contains.

    Raises `ValueError` if the string is not a port number.
    """
    number = whole_number(text)
    if number > _LAST_PORT:
        raise ValueError(text)
    return number


COMMAND = Command(
    name="mcp",
    summary="serve the commands as tools to a client that uses MCP",
    usage="outlive mcp [options]",
    refuses_words=True,
    details=(
        "Without --http, this command serves the client that started it, on stdin and stdout. With --http, it serves\n"
        "all callers on loopback that send the token. The tool `run` launches a task only if the client's own shell\n"
        "is known to be neither sandboxed nor restricted, or if OUTLIVE_MCP_RUN=on is set. This command needs `pip\n"
        "install 'outlive[mcp]'`."
    ),
    options=(
        option("--http PORT", "serve over HTTP on this port, or on any free port for 0", _port),
        option(
            "--project DIR",
            "use this directory for callers that do not name a directory (default: the current directory)",
            takes="directory",
        ),
    ),
    examples=(
        ("outlive mcp", "serve the client that starts this command"),
        ("outlive mcp --http 7777", "serve http://127.0.0.1:7777/mcp, and print the path of the file with the token"),
    ),
)

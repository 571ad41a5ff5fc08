"""The commands of Outlive that are written into a client's configuration.

They use absolute paths and `-I`, so that neither a repository nor the client's environment can replace Outlive's code.
"""

from __future__ import annotations

import os
import sys

from outlive.domain.tasks.command import quote


def program() -> list[str]:
    """Return the command that runs this installation of Outlive.

    If there is a script `outlive`, it is used, because it starts faster than `-m outlive`.
    """
    script = _script()
    return [sys.executable, "-I", *([script] if script else ["-m", "outlive"])]


def hook_words(client: str, event: str, *more: str) -> list[str]:
    """Return the command that a client calls as a hook, as a list of words."""
    return [*program(), "hook", client, event, *more]


def hook_text(client: str, event: str, *more: str) -> str:
    """Return the command that a client calls as a hook, as a line for a shell."""
    return " ".join(map(quote, hook_words(client, event, *more)))


def mcp_words() -> list[str] | None:
    """Return the command of Outlive's MCP server.

    Returns None if the server or the package `mcp` is not installed.
    """
    from importlib.util import find_spec  # noqa: PLC0415 - imported here, because only installing and the doctor need it

    if find_spec("outlive.mcp") is None or find_spec("mcp") is None:
        return None
    return [sys.executable, "-I", "-m", "outlive", "mcp"]


def is_ours(words: object, client: str) -> bool:
    """Return whether some version of Outlive wrote the command of a hook.

    The command is a list of words or a line for a shell.
    """
    text = " ".join(map(str, words)) if isinstance(words, list) else str(words)
    return "outlive" in text and f" hook {client} " in text and " -I " in text


def names_us(text: str) -> bool:
    """Return whether a configuration file may contain entries of Outlive.

    Uninstalling parses only such a file. So a broken file that has nothing to do with Outlive causes no error.
    """
    return "outlive" in text


def command_path() -> str:
    """Return the path of the program `outlive`.

    Returns only the name `outlive` if there is no script.
    """
    return _script() or "outlive"


def _script() -> str | None:
    from sysconfig import get_path  # noqa: PLC0415 - imported here, because only installing and the doctor need it

    called = os.path.abspath(sys.argv[0]) if os.path.basename(sys.argv[0]) == "outlive" else ""
    for path in (called, os.path.join(os.path.dirname(sys.executable), "outlive"), get_path("scripts") + "/outlive"):
        if path and os.path.isfile(path):
            return path
    return None

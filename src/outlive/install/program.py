"""What a client is told to call: this interpreter and this Outlive, by absolute path, isolated.

With `-I` neither the directory a client works in nor its environment can put other code in our
place. Nothing that a repository provides is ever named here.
"""

from __future__ import annotations

import os
import sys

from outlive.domain.command import quote


def program() -> list[str]:
    """The words that run this Outlive; its script, because `-m` costs a third of a bare interpreter's start."""
    script = _script()
    return [sys.executable, "-I", *([script] if script else ["-m", "outlive"])]


def hook_words(client: str, event: str, *more: str) -> list[str]:
    """The words that answer an event."""
    return [*program(), "hook", client, event, *more]


def hook_text(client: str, event: str, *more: str) -> str:
    """The same as one line of shell, for clients that take nothing else."""
    return " ".join(map(quote, hook_words(client, event, *more)))


def mcp_words() -> list[str] | None:
    """The words that start our MCP server; None where it, or what it needs, is not installed."""
    from importlib.util import find_spec  # noqa: PLC0415 - only installing asks

    if find_spec("outlive.mcp") is None or find_spec("mcp") is None:
        return None
    return [sys.executable, "-I", "-m", "outlive", "mcp"]


def is_ours(words: object, client: str) -> bool:
    """Whether a hook's command, as words or as text, is one that we wrote, by this Outlive or an earlier one."""
    text = " ".join(map(str, words)) if isinstance(words, list) else str(words)
    return "outlive" in text and f" hook {client} " in text and " -I " in text


def names_us(text: str) -> bool:
    """Whether a configuration can have anything of ours: then it must be one that can be edited."""
    return "outlive" in text


def command_path() -> str:
    """Where a person finds the command."""
    return _script() or "outlive"


def _script() -> str | None:
    from sysconfig import get_path  # noqa: PLC0415 - only installing asks

    called = os.path.abspath(sys.argv[0]) if os.path.basename(sys.argv[0]) == "outlive" else ""
    for path in (called, os.path.join(os.path.dirname(sys.executable), "outlive"), get_path("scripts") + "/outlive"):
        if path and os.path.isfile(path):
            return path
    return None

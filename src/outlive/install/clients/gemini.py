"""Gemini CLI: Outlive's hooks and its MCP server in the user's settings.

The settings may contain comments.
"""

from __future__ import annotations

import os

from outlive.install.clients.claude import (
    add_groups,
    carry_server,
    strip_groups,
    why_no_server,
    with_server,
    without_server,
)
from outlive.install.config.target_file import Target
from outlive.install.outlive_command import hook_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME = "gemini"
_DAY_MS = 86_400_000
# The tools before which Gemini CLI calls the hook that gives advice. Without `^` and `$`, a name would also match a
# part of a longer name.
_GUARDED = "^(run_shell_command|write_file|replace|read_file|grep_search|glob|list_directory)$"
_EVENTS = ("SessionStart", "SessionEnd", "BeforeAgent", "AfterTool", "AfterAgent")


def directory(environ: Mapping[str, str]) -> str:
    """Return the directory of Gemini CLI's configuration."""
    return os.path.join(environ.get("GEMINI_CLI_HOME") or environ.get("HOME", "/"), ".gemini")


def groups(guard: str) -> dict[str, list[dict[str, object]]]:
    """Return Outlive's hooks in the form of Gemini CLI's settings, by event.

    Advice is given after a tool call, because the reply to a hook before the call does not reach the model.
    """
    found = {event: [_group("*", event)] for event in _EVENTS}
    found["PreCompress"] = [_group("manual", "PreCompress")]
    found["BeforeTool"] = [_group("run_shell_command", "BeforeTool", "--guard", "off")]
    if guard != "off":
        found["AfterTool"].append(_group(_GUARDED, "advise", "--guard", guard))
    return found


def _group(matcher: str, event: str, *more: str) -> dict[str, object]:
    command = hook_text(NAME, event, *more)
    # In a session without a user, the hook at the end of a turn sleeps until no task runs. In other sessions, it
    # replies at once.
    timeout = _DAY_MS if event == "AfterAgent" else 10_000
    hook = {"name": f"outlive {event}", "type": "command", "command": command, "timeout": timeout}
    return {"matcher": matcher, "hooks": [hook]}


def targets(environ: Mapping[str, str], guard: str, server: Sequence[str] | None) -> list[Target]:
    """Return the files of Gemini CLI that an installation changes.

    `server` is the command of Outlive's MCP server, or None if the server is not to be added.
    """
    path = f"{directory(environ)}/settings.json"
    return [
        Target(
            path=path,
            add=lambda text: with_server(add_groups(text, groups(guard)), server),
            strip=lambda text: without_server(strip_groups(text, NAME)),
            left_out=lambda text: why_no_server(text, path, server),
            carry=carry_server,
        )
    ]

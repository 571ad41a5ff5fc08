"""Gemini CLI: hooks in the user's settings, which may have comments, and the MCP server where there is one."""

from __future__ import annotations

import os

from outlive.install.claude import add_groups, carry_server, strip_groups, why_no_server, with_server, without_server
from outlive.install.program import hook_text
from outlive.install.target import Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME = "gemini"
# The tools that the guard is asked about; a name within another's would match as well.
_GUARDED = "^(run_shell_command|write_file|replace|read_file|grep_search|glob|list_directory)$"
_EVENTS = ("SessionStart", "SessionEnd", "BeforeAgent", "AfterTool", "AfterAgent")


def directory(environ: Mapping[str, str]) -> str:
    """Where its configuration lies."""
    return os.path.join(environ.get("GEMINI_CLI_HOME") or environ.get("HOME", "/"), ".gemini")


def groups(guard: str) -> dict[str, list[dict[str, object]]]:
    """The groups of hooks of each event; the one before a tool only tells a command its session."""
    found = {event: [_group("*", event)] for event in _EVENTS}
    found["PreCompress"] = [_group("manual", "PreCompress")]
    found["BeforeTool"] = [_group("run_shell_command", "BeforeTool", "--guard", "off")]
    if guard != "off":
        found["AfterTool"].append(_group(_GUARDED, "advise", "--guard", guard))
    return found


def _group(matcher: str, event: str, *more: str) -> dict[str, object]:
    command = hook_text(NAME, event, *more)
    hook = {"name": f"outlive {event}", "type": "command", "command": command, "timeout": 10_000}
    return {"matcher": matcher, "hooks": [hook]}


def targets(environ: Mapping[str, str], guard: str, server: Sequence[str] | None) -> list[Target]:
    """Every file that is changed; `server` are the words that start our MCP server, if there is one."""
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

"""Gemini CLI: hooks in the user's settings, which may have comments, and the MCP server where there is one."""

from __future__ import annotations

import os

from outlive.install import jsonc
from outlive.install.claude import add_groups, strip_groups, strip_server
from outlive.install.program import hook_text, mcp_words
from outlive.install.target import Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "gemini"
_EVENTS = ("SessionStart", "SessionEnd", "BeforeAgent", "AfterTool", "AfterAgent")


def directory(environ: Mapping[str, str]) -> str:
    """Where its configuration lies."""
    return os.path.join(environ.get("GEMINI_CLI_HOME") or environ.get("HOME", "/"), ".gemini")


def groups(guard: str) -> dict[str, dict[str, object]]:
    """One group of hooks for each event; the one before a tool also tells a command its session, whatever the guard."""
    found: dict[str, dict[str, object]] = {event: {"matcher": "*", "hooks": [_hook(event)]} for event in _EVENTS}
    found["BeforeTool"] = {
        "matcher": "run_shell_command|write_file|replace",
        "hooks": [_hook("BeforeTool", "--guard", guard)],
    }
    return found


def _hook(event: str, *more: str) -> dict[str, object]:
    command = hook_text(NAME, event, *more)
    return {"name": f"outlive {event}", "type": "command", "command": command, "timeout": 10_000}


def targets(environ: Mapping[str, str], guard: str) -> list[Target]:
    """Every file that is changed."""
    words = mcp_words()

    def add(text: str) -> str:
        text = add_groups(text, groups(guard))
        if words is not None:
            text = jsonc.set_member(text, ("mcpServers", "outlive"), {"command": words[0], "args": words[1:]})
        return text

    def strip(text: str) -> str:
        return strip_server(strip_groups(text, NAME))

    return [Target(path=f"{directory(environ)}/settings.json", add=add, strip=strip)]

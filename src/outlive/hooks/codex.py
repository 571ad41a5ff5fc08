"""Codex: its payloads and answers are shaped like Claude Code's, with fewer of each."""

from __future__ import annotations

from outlive.bundle.processes import name_of, words_of
from outlive.hooks.event import as_read, as_reason, as_told
from outlive.hooks.patch import files_of
from outlive.hooks.process import nearest_client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from outlive.hooks.event import Answer, Event, Kind

# Without an event between two requests, only the end of a turn shows that everything has been read.
KINDS: dict[str, Kind] = {
    "SessionStart": "begin",
    "SessionEnd": "end",
    "UserPromptSubmit": "prompt",
    "PreToolUse": "tool",
    "PostToolUse": "results",
    "Stop": "stop",
    "SubagentStop": "results",
    "PreCompact": "compact",
}
# What Codex is started with if it is to take one turn, or is somebody's tool itself.
_ONE_TURN = frozenset(("exec", "e", "review", "mcp-server"))


def read(name: str, payload: Mapping[str, Any], _: Mapping[str, str]) -> Event:
    """The event that Codex tells of."""
    event, process = as_told("codex", KINDS[name], payload, "Bash"), nearest_client()
    patch = event.tool_input.get("command") or event.tool_input.get("input")
    return event.but(
        is_sub_agent=bool(payload.get("agent_id")) or name == "SubagentStop",
        is_turn=name == "Stop",
        process=process,
        keeps_messages=True,
        woken_by="queue" if name == "Stop" and _is_conversation(process) else "nobody",
        edits=files_of(patch) if event.tool == "apply_patch" else (),
    )


def _is_conversation(process: int | None) -> bool:
    """Whether it is Codex itself, and stays when its turn is over."""
    if process is None or name_of(process) != "codex":
        return False
    return not _ONE_TURN.intersection(words_of(process)[1:])


def write(name: str, answer: Answer) -> dict[str, object]:
    """The answer as Codex reads it."""
    return as_read(name, as_reason(answer) if name == "Stop" else answer, "updatedInput")

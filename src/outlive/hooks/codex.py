"""Codex: its payloads and answers are shaped like Claude Code's, with fewer of each."""

from __future__ import annotations

from outlive.bundle.processes import name_of
from outlive.hooks import claude
from outlive.hooks.event import event_of
from outlive.hooks.patch import files_of
from outlive.hooks.process import nearest_client, words_of

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
    heard = event_of("codex", KINDS[name], payload)
    command = heard.tool_input.get("command")
    patch = command or heard.tool_input.get("input")
    process = nearest_client()
    return heard.but(
        is_sub_agent=bool(payload.get("agent_id")) or name == "SubagentStop",
        is_turn=name == "Stop",
        process=process,
        woken_by="queue" if name == "Stop" and _is_conversation(process) else "nobody",
        command=command if heard.tool == "Bash" and isinstance(command, str) else None,
        edits=files_of(patch) if heard.tool == "apply_patch" else (),
    )


def _is_conversation(process: int | None) -> bool:
    """Whether it is Codex itself, and stays when its turn is over."""
    if process is None or name_of(process) != "codex":
        return False
    return not _ONE_TURN.intersection(words_of(process)[1:])


def write(name: str, answer: Answer) -> dict[str, object]:
    """The answer as Codex reads it; a turn that is over goes on only for a reason."""
    if name == "Stop" and answer.context:
        answer = answer.but(block=answer.context, context="")
    return claude.write(name, answer)

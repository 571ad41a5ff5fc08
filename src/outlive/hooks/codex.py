"""Codex: its payloads and answers are shaped like Claude Code's, with fewer of each."""

from __future__ import annotations

from outlive.bundle.processes import name_of
from outlive.domain.session import SOURCES
from outlive.hooks import claude
from outlive.hooks.event import Answer, Event
from outlive.hooks.process import nearest_client, words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from outlive.hooks.event import Kind

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
    given = payload.get("tool_input")
    tool_input = given if isinstance(given, dict) else {}
    command = tool_input.get("command") if payload.get("tool_name") == "Bash" else None
    source = payload.get("source")
    process = nearest_client()
    return Event(
        client="codex",
        kind=KINDS[name],
        session=str(payload["session_id"]),
        cwd=str(payload["cwd"]),
        is_sub_agent=bool(payload.get("agent_id")) or name == "SubagentStop",
        is_turn=name == "Stop",
        source=source if source in SOURCES else "startup",
        reason=payload.get("reason"),
        transcript=payload.get("transcript_path"),
        process=process,
        woken_by="queue" if name == "Stop" and _is_conversation(process) else "nobody",
        is_again=bool(payload.get("stop_hook_active")),
        text=str(payload.get("prompt", "")),
        tool=str(payload.get("tool_name", "")),
        tool_input=tool_input,
        command=command if isinstance(command, str) else None,
        edits=_edits(payload.get("tool_name"), tool_input),
    )


def _edits(tool: object, tool_input: Mapping[str, Any]) -> tuple[str, ...]:
    """The files that a patch is about."""
    patch = tool_input.get("command") or tool_input.get("input") if tool == "apply_patch" else None
    if not isinstance(patch, str):
        return ()
    heads = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ")
    return tuple(line.partition(": ")[2].strip() for line in patch.splitlines() if line.startswith(heads))


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

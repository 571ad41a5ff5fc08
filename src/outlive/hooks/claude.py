"""Claude Code: its payloads, its variables, its answers."""

from __future__ import annotations

from itertools import pairwise

from outlive.domain.session import SOURCES
from outlive.hooks.event import Answer, Event, cut
from outlive.hooks.process import words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from outlive.hooks.event import Kind

# PostToolBatch and not PostToolUse: it comes once between two requests to the model, so what was said
# at the one before has been read. Calls of one batch would confirm each other.
KINDS: dict[str, Kind] = {
    "SessionStart": "begin",
    "SessionEnd": "end",
    "UserPromptSubmit": "prompt",
    "PreToolUse": "tool",
    "PostToolUse": "results",
    "PostToolBatch": "results",
    "Stop": "stop",
    "SubagentStop": "results",
    "PreCompact": "compact",
    "Wake": "wake",
}
_MOST_BLOCKS = 8


def read(name: str, payload: Mapping[str, Any], environ: Mapping[str, str]) -> Event:
    """The event that Claude Code tells of."""
    given = payload.get("tool_input")
    tool_input = given if isinstance(given, dict) else {}
    command = tool_input.get("command") if payload.get("tool_name") == "Bash" else None
    source = payload.get("source")
    process = environ.get("CLAUDE_PID", "")
    return Event(
        client="claude",
        kind=KINDS[name],
        session=str(payload["session_id"]),
        cwd=environ.get("CLAUDE_PROJECT_DIR") or str(payload["cwd"]),
        is_sub_agent=bool(payload.get("agent_id")) or name == "SubagentStop",
        is_turn=name in {"PostToolBatch", "Stop"},
        source=source if source in SOURCES else "startup",
        reason=payload.get("reason"),
        transcript=payload.get("transcript_path"),
        process=int(process) if process.isascii() and process.isdigit() else None,
        is_again=bool(payload.get("stop_hook_active")),
        most_blocks=_most_blocks(environ),
        woken_by="hook" if name in {"Stop", "Wake"} and _is_conversation(environ) else "nobody",
        text=str(payload.get("prompt", "")),
        tool=str(payload.get("tool_name", "")),
        tool_input=tool_input,
        command=command if isinstance(command, str) else None,
        is_background=tool_input.get("run_in_background") is True,
        asks_nobody=payload.get("permission_mode") == "bypassPermissions",
    )


def _most_blocks(environ: Mapping[str, str]) -> int:
    given = environ.get("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "")
    cap = int(given) if given.isascii() and given.isdigit() else _MOST_BLOCKS
    return cap or 1_000_000  # 0 means: no cap


def _is_conversation(environ: Mapping[str, str]) -> bool:
    """Whether it is a conversation. One that answers a single prompt would wait for us, and then end all the same."""
    if environ.get("CLAUDE_CODE_ENTRYPOINT") == "cli":
        return True
    process = environ.get("CLAUDE_PID", "")
    words = words_of(int(process)) if process.isascii() and process.isdigit() else []
    return "--input-format=stream-json" in words or ("--input-format", "stream-json") in pairwise(words)


def write(name: str, answer: Answer) -> dict[str, object]:
    """The answer as Claude Code reads it."""
    said: dict[str, object] = {}
    if answer.block:
        said.update(decision="block", reason=cut(answer.block))
    if answer.note:
        said["systemMessage"] = answer.note
    specific: dict[str, object] = {}
    if answer.context:
        specific["additionalContext"] = cut(answer.context)
    if answer.tool_input is not None:
        specific["updatedInput"] = dict(answer.tool_input)
    if specific:
        said["hookSpecificOutput"] = {"hookEventName": name, **specific}
    return said

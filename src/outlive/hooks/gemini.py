"""Gemini CLI: its payloads, its answers, and the session's name for its commands, which it does not give them."""

from __future__ import annotations

from outlive.domain.session import SOURCES
from outlive.hooks.event import Answer, Event, cut
from outlive.hooks.process import nearest_client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from outlive.hooks.event import Kind

# What is answered when a person clears or compresses never reaches the model (seen with 0.61.0). That it compresses by
# itself cannot be seen: PreCompress comes before every request, whether it will or not.
KINDS: dict[str, Kind] = {
    "SessionStart": "begin",
    "SessionEnd": "end",
    "BeforeAgent": "prompt",
    "BeforeTool": "tool",
    "AfterTool": "results",
    "AfterAgent": "stop",
    "PreCompress": "compact",
}
_EDITORS = ("write_file", "replace")


def read(name: str, payload: Mapping[str, Any], _: Mapping[str, str]) -> Event:
    """The event that Gemini CLI tells of."""
    given = payload.get("tool_input")
    tool_input = given if isinstance(given, dict) else {}
    command = tool_input.get("command") if payload.get("tool_name") == "run_shell_command" else None
    path = tool_input.get("file_path")
    is_compressed = name == "PreCompress" and payload.get("trigger") == "manual"
    source: Any = "compact" if is_compressed else payload.get("source")
    return Event(
        client="gemini",
        kind="begin" if is_compressed else KINDS[name],
        session=str(payload["session_id"]),
        cwd=str(payload["cwd"]),
        is_turn=name == "AfterAgent",
        source=source if source in SOURCES else "startup",
        is_unheard=source in ("clear", "compact"),
        reason=payload.get("reason"),
        transcript=payload.get("transcript_path"),
        process=nearest_client(),
        is_again=bool(payload.get("stop_hook_active")),
        text=str(payload.get("prompt", "")),
        tool=str(payload.get("tool_name", "")),
        tool_input=tool_input,
        command=command if isinstance(command, str) else None,
        is_background=tool_input.get("is_background") is True,
        edits=(path,) if payload.get("tool_name") in _EDITORS and isinstance(path, str) and path else (),
    )


def write(name: str, answer: Answer) -> dict[str, object]:
    """The answer as Gemini CLI reads it."""
    if name == "AfterAgent" and answer.context:
        answer = answer.but(block=answer.context, context="")
    said: dict[str, object] = {}
    if answer.block:
        said.update(decision="block", reason=cut(answer.block))
    if answer.note:
        said["systemMessage"] = answer.note
    specific: dict[str, object] = {}
    if answer.context:
        specific["additionalContext"] = cut(answer.context)
    if answer.tool_input is not None:
        specific["tool_input"] = dict(answer.tool_input)
    if specific:
        said["hookSpecificOutput"] = {"hookEventName": name, **specific}
    return said

"""Gemini CLI: its payloads, its answers, and the session's name for its commands, which it does not give them."""

from __future__ import annotations

from outlive.hooks.event import cut, event_of
from outlive.hooks.process import nearest_client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from outlive.hooks.event import Answer, Event, Kind

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
    heard = event_of("gemini", KINDS[name], payload)
    command, path = heard.tool_input.get("command"), heard.tool_input.get("file_path")
    return heard.but(
        is_turn=name == "AfterAgent",
        process=nearest_client(),
        command=command if heard.tool == "run_shell_command" and isinstance(command, str) else None,
        is_background=heard.tool_input.get("is_background") is True,
        edits=(path,) if heard.tool in _EDITORS and isinstance(path, str) and path else (),
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

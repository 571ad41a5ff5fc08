"""Gemini CLI: its payloads, its answers, and the session's name for its commands, which it does not give them."""

from __future__ import annotations

from outlive.hooks.event import as_read, as_reason, as_told, reads_of
from outlive.hooks.process import nearest_client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from outlive.hooks.event import Answer, Event, Kind

# What is answered when a person clears or compresses never reaches the model, nor does context before a tool (seen with
# 0.61.0): `advise` is no event of its own, but what is said beside the result.
KINDS: dict[str, Kind] = {
    "SessionStart": "begin",
    "SessionEnd": "end",
    "BeforeAgent": "prompt",
    "BeforeTool": "tool",
    "advise": "tool",
    "AfterTool": "results",
    "AfterAgent": "stop",
    "PreCompress": "compact",
}
# PreCompress comes before every request, whether it will compress or not. When it has, it goes on with the summary as
# it would with a session that is resumed, and writes that into its transcript (seen with 0.61.0). At the beginning of a
# line nobody but the client can write it: in what is said, a newline and a quote are escaped.
_GOES_ON = b'\n{"$set":{"sessionId":'
_EDITORS = ("write_file", "replace")
READERS = ("read_file", "grep_search", "glob", "list_directory")


def read(name: str, payload: Mapping[str, Any], _: Mapping[str, str]) -> Event:
    """The event that Gemini CLI tells of."""
    event = as_told("gemini", KINDS[name], payload, "run_shell_command")
    path, response = event.tool_input.get("file_path"), payload.get("tool_response")
    is_done = event.kind == "tool" or not (isinstance(response, dict) and response.get("error"))
    if name == "PreCompress" and payload.get("trigger") == "manual":
        event = event.but(kind="begin", source="compact")
    return event.but(
        is_turn=name == "AfterAgent",
        is_unheard=event.source in ("clear", "compact"),
        summary_mark=_GOES_ON,
        process=nearest_client(),
        is_background=event.tool_input.get("is_background") is True,
        edits=(path,) if event.tool in _EDITORS and isinstance(path, str) and path and is_done else (),
        reads=reads_of(event, READERS, "file_path", "dir_path"),
    )


def write(name: str, answer: Answer) -> dict[str, object]:
    """The answer as Gemini CLI reads it."""
    if name == "advise":
        return as_read("AfterTool", answer.but(tool_input=None), "tool_input")
    return as_read(name, as_reason(answer) if name == "AfterAgent" else answer, "tool_input")

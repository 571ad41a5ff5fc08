"""Gemini CLI: the reading of its hook input, and the writing of the reply."""

from __future__ import annotations

from outlive.hooks.client_process import lacks_terminal, nearest_client
from outlive.hooks.event import as_read, as_reason, as_told, reads_of
from outlive.linux.processes import words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from outlive.hooks.event import Answer, Event, Kind

# At some events Gemini CLI does not pass a hook's reply to the model: after `/clear`, after `/compress` and before a
# tool call (as of 0.61.0). So advice is given by a hook that Gemini CLI calls after a tool call. `advise` is Outlive's
# name for this hook, not an event of Gemini CLI.
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
# The event PreCompress comes before every request to the model, so it does not show that the history was really
# summarized. After a summary, the client writes this line into its transcript (as of 0.61.0). Newlines and quotes are
# escaped in messages, so no message can contain the line.
_GOES_ON = b'\n{"$set":{"sessionId":'
_EDITORS = ("write_file", "replace")
READERS = ("read_file", "grep_search", "glob", "list_directory")
# The short options without a value. In one word, they may stand before `p`, as in `-yp` (as of 0.61.0).
_SWITCHES = frozenset("dsyl")


def read(name: str, payload: Mapping[str, Any], _: Mapping[str, str]) -> Event:
    """Convert Gemini CLI's hook input to an `Event`."""
    event, process = as_told("gemini", KINDS[name], payload, "run_shell_command"), nearest_client()
    path, response = event.tool_input.get("file_path"), payload.get("tool_response")
    is_done = event.kind == "tool" or not (isinstance(response, dict) and response.get("error"))
    if name == "PreCompress" and payload.get("trigger") == "manual":
        event = event.but(kind="begin", source="compact")
    return event.but(
        is_turn=name == "AfterAgent",
        is_unheard=event.source in ("clear", "compact"),
        summary_mark=_GOES_ON,
        process=process,
        is_headless=name == "AfterAgent" and process is not None and _is_one_turn(process),
        is_background=event.tool_input.get("is_background") is True,
        edits=(path,) if event.tool in _EDITORS and isinstance(path, str) and path and is_done else (),
        reads=reads_of(event, READERS, "file_path", "dir_path"),
    )


def _is_one_turn(process: int) -> bool:
    """Return whether the client's process exits after this turn.

    A client without a terminal usually exits. But with ACP (Agent Client Protocol) it keeps running, because an editor
    sends prompts through a pipe.
    """
    words = words_of(process)
    if any(gives_prompt(word) for word in words):
        return True
    return not any(word.startswith(("--acp", "--experimental-acp")) for word in words) and lacks_terminal(process)


def gives_prompt(word: str) -> bool:
    """Return whether a word on the client's command line is an option for the prompt.

    These options are `--prompt`, `-p`, and `-p` joined to options without a value, as in `-yp`.
    """
    name = word.partition("=")[0]
    return name == "--prompt" or (name[:1] == "-" and name[-1:] == "p" and _SWITCHES.issuperset(name[1:-1]))


def write(name: str, answer: Answer) -> dict[str, object]:
    """Return a hook's reply in the JSON form that Gemini CLI reads."""
    if name == "advise":
        return as_read("AfterTool", answer.but(tool_input=None), "tool_input")
    return as_read(name, as_reason(answer) if name == "AfterAgent" else answer, "tool_input")

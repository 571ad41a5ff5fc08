"""Claude Code: its payloads, its variables, its answers."""

from __future__ import annotations

import os
from itertools import pairwise

from outlive.bundle.processes import words_of
from outlive.domain.foreign import Seen
from outlive.hooks.event import as_read, as_told, reads_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from outlive.hooks.event import Answer, Event, Kind

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
# Its tools that change a file, and where they name it.
EDITORS = {"Edit": "file_path", "MultiEdit": "file_path", "Write": "file_path", "NotebookEdit": "notebook_path"}
# Those that only look at files.
READERS = ("Read", "Grep", "Glob")
_STARTED, _WRITTEN_TO = "Command running in background with ID: ", "Output is being written to: "
# What the model reads of a call that was not made.
_REFUSED = "<tool_use_error>"
_MOST_BLOCKS = 8


def read(name: str, payload: Mapping[str, Any], environ: Mapping[str, str]) -> Event:
    """The event that Claude Code tells of."""
    event = as_told("claude", KINDS[name], payload, "Bash")
    process = environ.get("CLAUDE_PID", "")
    return event.but(
        cwd=environ.get("CLAUDE_PROJECT_DIR") or event.cwd,
        is_sub_agent=bool(payload.get("agent_id")) or name == "SubagentStop",
        is_turn=name in {"PostToolBatch", "Stop"},
        process=int(process) if process.isascii() and process.isdigit() else None,
        most_blocks=_most_blocks(environ),
        woken_by="hook" if name in {"Stop", "Wake"} and _is_conversation(environ) else "nobody",
        is_background=event.tool_input.get("run_in_background") is True,
        edits=_edits(name, payload, event.tool_input),
        # Its searches run where its shell has gone to, which need not be where it was started.
        reads=tuple(os.path.join(event.cwd, path) for path in reads_of(event, READERS, "file_path", "path")),
        foreign=_foreign(name, payload),
        foreign_are_all=name == "Stop" and isinstance(payload.get("background_tasks"), list),
        asks_nobody=payload.get("permission_mode") == "bypassPermissions",
    )


def _calls(payload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    given = payload.get("tool_calls")
    return [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []


def _edits(name: str, payload: Mapping[str, Any], tool_input: Mapping[str, Any]) -> tuple[str, ...]:
    """The files that it is about to change, or has changed since the model was asked last."""
    calls: list[tuple[Any, Any]] = [(payload.get("tool_name"), tool_input)] if name == "PreToolUse" else []
    if name == "PostToolBatch":
        done = (each for each in _calls(payload) if not _was_refused(each.get("tool_response")))
        calls = [(each.get("tool_name"), each.get("tool_input")) for each in done]
    found = (given.get(EDITORS[tool]) for tool, given in calls if tool in EDITORS and isinstance(given, dict))
    return tuple(path for path in found if isinstance(path, str) and path)


def _was_refused(response: object) -> bool:
    """Whether a tool did nothing: as for an edit of a file that has changed since the model read it."""
    said = response[0] if isinstance(response, list) and response else response
    text = said.get("text") if isinstance(said, dict) else said
    return isinstance(text, str) and text.startswith(_REFUSED)


def _foreign(name: str, payload: Mapping[str, Any]) -> tuple[Seen, ...]:
    """Its own background shells: all of them when it stops, and each as it is started, with where its output is."""
    listed = payload.get("background_tasks") if name == "Stop" else None
    found = [
        Seen(id=str(each["id"]), command=str(each.get("command") or each.get("description") or "?"))
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, dict) and each.get("id")
    ]
    for call in _calls(payload) if name == "PostToolBatch" else ():
        given, said = call.get("tool_input"), call.get("tool_response")
        text = said if isinstance(said, str) else ""
        if call.get("tool_name") == "Bash" and isinstance(given, dict) and _STARTED in text:
            shell, _, rest = text.partition(_STARTED)[2].partition(".")
            output = rest.partition(_WRITTEN_TO)[2].partition(".output")
            found.append(
                Seen(
                    id=shell.strip(),
                    command=str(given.get("command", "?")),
                    description=None if given.get("description") is None else str(given["description"]),
                    output=output[0] + output[1] if output[1] else None,
                )
            )
    return tuple(found)


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
    return as_read(name, answer, "updatedInput")

"""Claude Code: the reading of its hook input, and the writing of the reply."""

from __future__ import annotations

import os

from outlive.hooks.clients.payload import text
from outlive.hooks.event import as_read, as_told, reads_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    from outlive.domain.sessions.client_task import ClientReport
    from outlive.hooks.event import Answer, Event, Kind

# Claude Code calls PostToolBatch once between two requests to the model. By then, the model has read the hook's
# previous reply, so the notices in that reply are confirmed. PostToolUse comes after each single tool call, when the
# model may not have read the previous reply. So PostToolUse must not confirm notices.
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
# The tools that change a file. The value is the name of the input field with the path of the file.
EDITORS = {"Edit": "file_path", "MultiEdit": "file_path", "Write": "file_path", "NotebookEdit": "notebook_path"}
# The tools that only read files.
READERS = ("Read", "Grep", "Glob")
_STARTED, _WRITTEN_TO = "Command running in background with ID: ", "Output is being written to: "
# The beginning of a tool's result if the call was refused.
_REFUSED = "<tool_use_error>"
_MOST_BLOCKS = 8


def read(name: str, payload: Mapping[str, Any], environ: Mapping[str, str]) -> Event:
    """Convert Claude Code's hook input to an `Event`."""
    event = as_told("claude", KINDS[name], payload, "Bash")
    given = environ.get("CLAUDE_PID", "")
    process = int(given) if given.isascii() and given.isdigit() else None
    mode = _mode(process, environ) if name in {"Stop", "Wake"} else "unknown"
    foreign = _foreign(name, payload)
    return event.but(
        cwd=environ.get("CLAUDE_PROJECT_DIR") or event.cwd,
        is_sub_agent=bool(payload.get("agent_id")) or name == "SubagentStop",
        is_turn=name in {"PostToolBatch", "Stop"},
        process=process,
        most_blocks=_most_blocks(environ),
        woken_by="hook" if mode == "conversation" else "nobody",
        is_headless=name == "Stop" and mode == "headless",
        waits_itself=name == "Stop" and any(_waits_for_tasks(each.command) for each in foreign),
        is_background=event.tool_input.get("run_in_background") is True,
        edits=_edits(name, payload, event.tool_input),
        # A relative path starts at the shell's current directory, which may differ from the directory where the session
        # started.
        reads=tuple(os.path.join(event.cwd, path) for path in reads_of(event, READERS, "file_path", "path")),
        foreign=foreign,
        foreign_are_all=name == "Stop" and isinstance(payload.get("background_tasks"), list),
        asks_nobody=payload.get("permission_mode") == "bypassPermissions",
    )


def _calls(payload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    given = payload.get("tool_calls")
    return [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []


def _waits_for_tasks(text: str) -> bool:
    """Return whether a command line runs `outlive wait` or `outlive gate --wait`."""
    from outlive.observe.shell.split_text import pieces_within, program  # noqa: PLC0415 - imported here, because it is rarely needed: few Stop events list background commands

    found = [program(piece) for piece in pieces_within(text)]
    return any(
        words[:2] == ("outlive", "wait") or (words[:2] == ("outlive", "gate") and "--wait" in words) for words in found
    )


def _edits(name: str, payload: Mapping[str, Any], tool_input: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the files that a tool call will change or that finished calls changed."""
    calls: list[tuple[Any, Any]] = [(text(payload, "tool_name"), tool_input)] if name == "PreToolUse" else []
    if name == "PostToolBatch":
        done = (each for each in _calls(payload) if not _was_refused(each.get("tool_response")))
        calls = [(text(each, "tool_name"), each.get("tool_input")) for each in done]
    found = (given.get(EDITORS[tool]) for tool, given in calls if tool in EDITORS and isinstance(given, dict))
    return tuple(path for path in found if isinstance(path, str) and path)


def _was_refused(response: object) -> bool:
    """Return whether the result of a tool says that the tool call was refused."""
    said = response[0] if isinstance(response, list) and response else response
    words = said.get("text") if isinstance(said, dict) else said
    return isinstance(words, str) and words.startswith(_REFUSED)


def _foreign(name: str, payload: Mapping[str, Any]) -> tuple[ClientReport, ...]:
    """Return the background commands that Claude Code itself runs.

    At the event Stop, these are all that are running. At the event PostToolBatch, these are only the commands that the
    finished tool calls have started.
    """
    listed = payload.get("background_tasks") if name == "Stop" else None
    calls = _calls(payload) if name == "PostToolBatch" else []
    if not calls and not listed:
        return ()
    from outlive.domain.sessions.client_task import ClientReport  # noqa: PLC0415 - imported here, because it is rarely needed: few events report background commands

    found = [
        ClientReport(id=str(each["id"]), command=str(each.get("command") or each.get("description") or "?"))
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, dict) and each.get("id") and not _is_ours(each)
    ]
    for call in calls:
        given, said = call.get("tool_input"), call.get("tool_response")
        words = said if isinstance(said, str) else ""
        if call.get("tool_name") == "Bash" and isinstance(given, dict) and _STARTED in words:
            shell, _, rest = words.partition(_STARTED)[2].partition(".")
            output = rest.partition(_WRITTEN_TO)[2].partition(".output")
            found.append(
                ClientReport(
                    id=shell.strip(),
                    command=str(given.get("command", "?")),
                    description=None if given.get("description") is None else str(given["description"]),
                    output=output[0] + output[1] if output[1] else None,
                    cwd=text(payload, "cwd"),
                )
            )
    return tuple(found)


def _is_ours(listed: Mapping[str, Any]) -> bool:
    """Return whether Outlive's MCP server started a task that Claude Code lists.

    In this list, the name of a plugin may stand before the server's name.
    """
    kind = str(listed.get("type", "")).lower().replace(" ", "_")
    return kind == "mcp_task" and str(listed.get("server", "")).rpartition(":")[2] == "outlive"


def _most_blocks(environ: Mapping[str, str]) -> int:
    given = environ.get("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "")
    cap = int(given) if given.isascii() and given.isdigit() else _MOST_BLOCKS
    return cap or 1_000_000  # 0 means that Claude Code lets a hook block as many stops as it wants


def _mode(process: int | None, environ: Mapping[str, str]) -> Literal["conversation", "headless", "unknown"]:
    """Return whether the client takes further prompts, or exits after one prompt.

    The command line decides before the variable `CLAUDE_CODE_ENTRYPOINT`. Programs that Claude Code starts inherit this
    variable, so its value may come from another Claude Code process.
    """
    words = []
    if process is not None:
        from outlive.linux.processes import words_of  # noqa: PLC0415 - imported here, because only the events Stop and Wake need the mode

        words = words_of(process)
        # No word contains a zero byte. So this search finds the two words only if the second directly follows the
        # first.
        if "--input-format=stream-json" in words or "\0--input-format\0stream-json\0" in "\0".join(words):
            from outlive.hooks.client_process import reads_file  # noqa: PLC0415 - imported here, because it is rarely needed: few clients get their prompts as stream-json

            return "headless" if reads_file(process) else "conversation"
        if "-p" in words or "--print" in words:
            return "headless"
    entry = environ.get("CLAUDE_CODE_ENTRYPOINT")
    if entry == "cli":
        return "conversation"
    if entry != "sdk-cli" or process is None or not words:
        return "unknown"
    from outlive.hooks.client_process import lacks_terminal  # noqa: PLC0415 - imported here, because it is rarely needed: the command line usually shows the mode

    return "headless" if lacks_terminal(process) else "conversation"


def write(name: str, answer: Answer) -> dict[str, object]:
    """Return a hook's reply in the JSON form that Claude Code reads."""
    return as_read(name, answer, "updatedInput")

"""Codex: the reading of its hook input, and the writing of the reply.

Codex uses some of the fields that Claude Code uses.
"""

from __future__ import annotations

from outlive.hooks.client_process import nearest_client
from outlive.hooks.clients.patch_paths import files_of
from outlive.hooks.event import as_read, as_reason, as_told
from outlive.linux.processes import name_of, words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from outlive.hooks.event import Answer, Event, Kind

# Codex calls no hook between two requests to the model. So only the end of a turn shows that the model has read all
# notices.
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
# The subcommands with which Codex exits after one turn.
_ONE_TURN = ("exec", "e", "review")
# With this subcommand Codex keeps running after a turn, but only the program that started Codex can begin the next
# turn.
_TOOL = "mcp-server"
# The options whose value is the next word, and the options whose values are all words up to the next option. They are
# known from Codex 0.169.0.
_WITH_VALUE = (
    *("-c", "--config", "--enable", "--disable", "--remote", "--remote-auth-token-env", "-m", "--model"),
    *("--local-provider", "-p", "--profile", "-s", "--sandbox", "-C", "--cd", "--add-dir", "-a", "--ask-for-approval"),
)
_WITH_VALUES = ("-i", "--image")


def read(name: str, payload: Mapping[str, Any], _: Mapping[str, str]) -> Event:
    """Convert Codex's hook input to an `Event`."""
    event, process = as_told("codex", KINDS[name], payload, "Bash"), nearest_client()
    is_codex = name == "Stop" and process is not None and name_of(process) == "codex"
    command = command_of(words_of(process)[1:]) if is_codex and process is not None else None
    is_one_turn = command in _ONE_TURN
    patch = event.tool_input.get("command") or event.tool_input.get("input")
    return event.but(
        is_sub_agent=bool(payload.get("agent_id")) or name == "SubagentStop",
        is_turn=name == "Stop",
        process=process,
        keeps_messages=True,
        woken_by="nobody" if command is None or is_one_turn or command == _TOOL else "queue",
        is_headless=is_one_turn,
        edits=files_of(patch) if event.tool == "apply_patch" else (),
    )


def command_of(words: Sequence[str]) -> str:
    """Return the subcommand in a command line of Codex.

    This is the first word that is neither an option nor the value of an option. It is not enough to search for a word
    such as `exec`, because a profile or a prompt may be called `exec`, too.
    """
    is_value, are_values = False, False
    for word in words:
        if word.startswith("-"):
            is_value, are_values = word in _WITH_VALUE, word in _WITH_VALUES
        elif is_value:
            is_value = False
        elif not are_values:
            return word
    return ""


def write(name: str, answer: Answer) -> dict[str, object]:
    """Return a hook's reply in the JSON form that Codex reads."""
    return as_read(name, as_reason(answer) if name == "Stop" else answer, "updatedInput")

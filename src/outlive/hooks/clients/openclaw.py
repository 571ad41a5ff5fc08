"""OpenClaw: the input and replies of Outlive's plugin for it.

The plugin is in `install/clients/openclaw_plugin`.
"""

from __future__ import annotations

from outlive.domain.sessions.client_task import ClientReport
from outlive.hooks.clients.payload import text, texts
from outlive.hooks.event import as_told, cut, reads_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from outlive.hooks.event import Answer, Event, Kind

# OpenClaw reports no event between two requests to the model. So only the end of a turn shows that the model has read
# all notices.
KINDS: dict[str, Kind] = {
    "session_start": "begin",
    "session_end": "end",
    "before_prompt_build": "prompt",
    "before_tool_call": "tool",
    "after_tool_call": "results",
    "before_agent_finalize": "stop",
    "agent_end": "stop",
    "before_compaction": "compact",
    "subagent_spawned": "results",
    "subagent_ended": "results",
    "wake": "wake",
}
_EDITORS = ("write", "edit", "apply_patch")
READERS = ("read", "ls")
_CHILDREN = ("subagent_spawned", "subagent_ended")
# The number of times that OpenClaw lets a hook continue a turn. After that, OpenClaw ends the turn without calling the
# hook again.
_MOST_BLOCKS = 3


def read(name: str, payload: Mapping[str, Any], _: Mapping[str, str]) -> Event:
    """Convert the input that Outlive's OpenClaw plugin sends to an `Event`."""
    event = as_told("openclaw", KINDS[name], payload, "exec")
    process = payload.get("pid")
    return event.but(
        is_sub_agent=payload.get("is_sub_agent") is True or name in _CHILDREN,
        is_turn=event.kind == "stop",
        continues=text(payload, "continues"),
        process=process if isinstance(process, int) else None,
        shares_process=True,
        is_again=payload.get("is_again") is True,
        most_blocks=0 if name == "agent_end" else _MOST_BLOCKS,
        woken_by="nudge" if payload.get("can_be_woken") is True else "nobody",
        is_background=event.tool_input.get("background") is True,
        edits=_edits(event.tool, payload, event.tool_input),
        reads=reads_of(event, READERS, "path", "file_path"),
        foreign=_children(payload),
        foreign_are_all=name in _CHILDREN,
    )


def _edits(tool: str, payload: Mapping[str, Any], tool_input: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the files that a tool call of OpenClaw changes, or an empty tuple."""
    if tool not in _EDITORS:
        return ()
    path = text(tool_input, "path") or text(tool_input, "file_path")
    return (path,) if path else texts(payload, "paths")


def _children(payload: Mapping[str, Any]) -> tuple[ClientReport, ...]:
    """Return the running sub-agents. The id of a sub-agent is the key of its session."""
    given = payload.get("children")
    pairs = [each for each in given if isinstance(each, list) and len(each) == 2] if isinstance(given, list) else []
    return tuple(ClientReport(id=str(key), command=str(label)) for key, label in pairs)


def write(_: str, answer: Answer) -> dict[str, object]:
    """Return a hook's reply in the JSON form that Outlive's OpenClaw plugin reads."""
    fields = {"context": cut(answer.context), "block": cut(answer.block), "note": answer.note}
    return {name: each for name, each in fields.items() if each}

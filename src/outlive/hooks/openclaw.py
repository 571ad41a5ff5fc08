"""OpenClaw: what our plugin in its gateway tells of each of its events, and what it is answered.

The plugin is ours (`install/openclaw_plugin`), and so are the fields; the names of the events are OpenClaw's.
"""

from __future__ import annotations

from outlive.domain.foreign import Seen
from outlive.hooks.event import as_told, cut, reads_of
from outlive.hooks.payload import text, texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from outlive.hooks.event import Answer, Event, Kind

# Without an event between two requests to the model, only the end of a turn shows that everything has been read.
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
# It lets a turn go on so often, and then ends it without asking.
_MOST_BLOCKS = 3


def read(name: str, payload: Mapping[str, Any], _: Mapping[str, str]) -> Event:
    """The event that the plugin tells of."""
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
    """The files that a tool is about."""
    if tool not in _EDITORS:
        return ()
    path = text(tool_input, "path") or text(tool_input, "file_path")
    return (path,) if path else texts(payload, "paths")


def _children(payload: Mapping[str, Any]) -> tuple[Seen, ...]:
    """Its sub-agents that are at work, each with its session's key."""
    given = payload.get("children")
    pairs = [each for each in given if isinstance(each, list) and len(each) == 2] if isinstance(given, list) else []
    return tuple(Seen(id=str(key), command=str(label)) for key, label in pairs)


def write(_: str, answer: Answer) -> dict[str, object]:
    """The answer as the plugin reads it."""
    said = {"context": cut(answer.context), "block": cut(answer.block), "note": answer.note}
    return {name: each for name, each in said.items() if each}

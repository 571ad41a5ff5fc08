"""OpenCode: it calls no hooks, so a plugin of ours inside it does, in the words of its own events."""

from __future__ import annotations

from outlive.domain.foreign import Seen
from outlive.hooks.event import as_read, as_told, reads_of
from outlive.hooks.patch import files_of
from outlive.hooks.process import nearest_client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from outlive.hooks.event import Answer, Event, Kind

# It has no event for a session that begins: the plugin adds a `source` to the first that can carry what is said.
KINDS: dict[str, Kind] = {
    "chat.message": "prompt",
    "tool.execute.before": "tool",
    "tool.execute.after": "results",
    "session.created": "results",
    "session.idle": "stop",
    "session.deleted": "end",
    "dispose": "end",
    "experimental.session.compacting": "compact",
    "Wake": "wake",
}
_CAN_BEGIN = ("chat.message", "tool.execute.after")
_EDITORS = ("edit", "write")
READERS = ("read", "grep", "glob", "list")
_PATCHES = ("apply_patch", "patch")


def read(name: str, payload: Mapping[str, Any], _: Mapping[str, str]) -> Event:
    """The event that our plugin tells of."""
    is_sub_agent = bool(payload.get("agent_id"))
    begins = name in _CAN_BEGIN and bool(payload.get("source")) and not is_sub_agent
    event = as_told("opencode", "begin" if begins else KINDS[name], payload, "bash")
    children = payload.get("children")
    return event.but(
        is_sub_agent=is_sub_agent,
        is_turn=payload.get("has_read") is True,
        kept=str(payload["kept"]) if payload.get("kept") else None,
        process=nearest_client(),
        shares_process=True,
        lets_go=name == "dispose",
        woken_by="nobody" if payload.get("is_one_turn") else "hook",
        edits=_edits(event.tool, event.tool_input),
        reads=reads_of(event, READERS, "filePath", "path"),
        foreign=_children(children),
        foreign_are_all=isinstance(children, list),
        asks_nobody=payload.get("asks_nobody") is True,
    )


def _edits(tool: str, tool_input: Mapping[str, Any]) -> tuple[str, ...]:
    """The files that one of its own tools is about."""
    if tool in _PATCHES:
        return files_of(tool_input.get("patchText"))
    path = tool_input.get("filePath") if tool in _EDITORS else None
    return (path,) if isinstance(path, str) and path else ()


def _children(told: object) -> tuple[Seen, ...]:
    """The sessions of its sub-agents that are at work."""
    found = [each for each in told if isinstance(each, dict)] if isinstance(told, list) else []
    return tuple(Seen(id=str(each["id"]), command=str(each.get("title") or "a sub-agent")) for each in found)


def write(name: str, answer: Answer) -> dict[str, object]:
    """The answer as the plugin reads it, which is as Claude Code would."""
    return as_read(name, answer, "updatedInput")

"""OpenCode: the input and replies of Outlive's plugin for it.

The names of the events are those of OpenCode's plugin API, except for `Wake`.
"""

from __future__ import annotations

from outlive.domain.sessions.client_task import ClientReport
from outlive.hooks.client_process import nearest_client
from outlive.hooks.clients.patch_paths import files_of
from outlive.hooks.clients.payload import text
from outlive.hooks.event import as_read, as_told, reads_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from outlive.domain.sessions.client_task import Sight
    from outlive.hooks.event import Answer, Event, Kind

# OpenCode reports no event when a session begins. Instead, the plugin adds a field `source` to the first event whose
# reply can reach the model.
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
_SIGHTS: dict[str, Sight] = {"present": "present", "absent": "absent", "unknown": "unknown"}


def read(name: str, payload: Mapping[str, Any], _: Mapping[str, str]) -> Event:
    """Convert the input that Outlive's OpenCode plugin sends to an `Event`."""
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
        is_headless=name == "session.idle" and payload.get("is_one_turn") is True,
        edits=_edits(event.tool, event.tool_input),
        reads=reads_of(event, READERS, "filePath", "path"),
        foreign=_children(children),
        foreign_are_all=isinstance(children, list),
        asks_nobody=payload.get("asks_nobody") is True,
    )


def _edits(tool: str, tool_input: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the files that a tool of OpenCode changes, or an empty tuple."""
    if tool in _PATCHES:
        return files_of(tool_input.get("patchText"))
    path = tool_input.get("filePath") if tool in _EDITORS else None
    return (path,) if isinstance(path, str) and path else ()


def _children(told: object) -> tuple[ClientReport, ...]:
    """Return the running child sessions that Outlive's plugin reports.

    The plugin also reports for each child session whether OpenCode can still find it.
    """
    found = [each for each in told if isinstance(each, dict) and each.get("id")] if isinstance(told, list) else []
    return tuple(
        ClientReport(
            id=str(each["id"]),
            command=str(each.get("title") or "a sub-agent"),
            kind="session",
            agent=text(each, "agent"),
            parent=text(each, "parent"),
            sight=_SIGHTS.get(str(each.get("sight")), "present"),
        )
        for each in found
    )


def write(name: str, answer: Answer) -> dict[str, object]:
    """Return a hook's reply in the JSON form that Outlive's OpenCode plugin reads.

    The form is the one that Claude Code uses.
    """
    document = as_read(name, answer, "updatedInput")
    if answer.look_file:
        document["look_file"] = answer.look_file
    if answer.given_up:
        document["given_up"] = list(answer.given_up)
    return document

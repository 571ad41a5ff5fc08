"""Cursor: the reading of its hook input, and the writing of the reply.

This module follows the documentation of Cursor, and was never tried with Cursor.

The event `beforeSubmitPrompt` is not used, because Cursor does not show the hook's reply to the model.
"""

from __future__ import annotations

from outlive.domain.sessions.client_task import ClientReport
from outlive.hooks.client_process import nearest_client
from outlive.hooks.clients.payload import text, texts
from outlive.hooks.event import as_told, cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from outlive.hooks.event import Answer, Event, Kind

# Cursor does not pass the reply of a hook before a tool call to the model. So advice is given by a hook that Cursor
# calls after a tool call. `advise` is Outlive's name for this hook, not an event of Cursor.
KINDS: dict[str, Kind] = {
    "sessionStart": "begin",
    "sessionEnd": "end",
    "preToolUse": "tool",
    "advise": "tool",
    "postToolUse": "results",
    "preCompact": "compact",
    "subagentStart": "results",
    "stop": "stop",
}
# The number of times in a row that Cursor lets a hook continue a turn with a message. This is Cursor's default, and
# `install` also writes it into Cursor's configuration.
MOST_BLOCKS = 5
_EDITORS = ("Write", "Edit", "MultiEdit", "Delete")


def read(name: str, payload: Mapping[str, Any], environ: Mapping[str, str]) -> Event:
    """Convert Cursor's hook input to an `Event`."""
    roots = texts(payload, "workspace_roots")
    place = environ.get("CURSOR_PROJECT_DIR") or (roots[0] if roots else text(payload, "cwd"))
    session = text(payload, "conversation_id") or text(payload, "session_id")
    event = as_told("cursor", KINDS[name], {**payload, "session_id": session, "cwd": place}, "Shell")
    is_over = name == "stop" and payload.get("status", "completed") == "completed"
    path = text(event.tool_input, "file_path") or text(event.tool_input, "path")
    return event.but(
        is_sub_agent=name == "subagentStart",
        is_turn=is_over,
        process=nearest_client(),
        shares_process=True,
        is_again=bool(payload.get("loop_count")),
        most_blocks=MOST_BLOCKS if is_over else 0,
        is_background=event.tool_input.get("is_background") is True,
        edits=(path,) if event.tool in _EDITORS and path else (),
        foreign=_sub_agents(name, payload),
        foreign_are_all=name == "stop",
    )


def _sub_agents(name: str, payload: Mapping[str, Any]) -> tuple[ClientReport, ...]:
    """Return the sub-agent whose start an event reports, or an empty tuple.

    Cursor does not report which sub-agent has ended.
    """
    if name != "subagentStart" or text(payload, "subagent_id") is None:
        return ()
    kind = text(payload, "subagent_type") or "sub-agent"
    return (ClientReport(id=payload["subagent_id"], command=f"{kind}: {text(payload, 'task') or '?'}"),)


def write(name: str, answer: Answer) -> dict[str, object]:
    """Return a hook's reply in the JSON form that Cursor reads.

    The reply never permits a tool call, because only the user may do that.
    """
    if name == "stop":
        message = answer.block or answer.context
        return {"followup_message": cut(message)} if message else {}
    if name == "preToolUse":
        return {} if answer.tool_input is None else {"updated_input": dict(answer.tool_input)}
    return {"additional_context": cut(answer.context)} if answer.context else {}

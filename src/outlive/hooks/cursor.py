"""Cursor: its payloads and answers as its documentation has them; no Cursor could be run to see them.

Of its answers only those are used that are documented to reach the model: context when a conversation begins and
beside the result of a tool, and a message that follows when a turn is over. What `beforeSubmitPrompt` says reaches
nobody, so nothing may be told there, and it is left out.
"""

from __future__ import annotations

from outlive.domain.foreign import Seen
from outlive.hooks.event import as_told, cut
from outlive.hooks.payload import text, texts
from outlive.hooks.process import nearest_client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from outlive.hooks.event import Answer, Event, Kind

# `advise` is no event of its own: beside a result, because what is said before a tool reaches nobody either.
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
# How often a message of ours may follow in a row; installed with the hook, and Cursor's own default.
MOST_BLOCKS = 5
_EDITORS = ("Write", "Edit", "MultiEdit", "Delete")


def read(name: str, payload: Mapping[str, Any], environ: Mapping[str, str]) -> Event:
    """The event that Cursor tells of."""
    roots = texts(payload, "workspace_roots")
    place = environ.get("CURSOR_PROJECT_DIR") or (roots[0] if roots else payload["cwd"])
    session = text(payload, "conversation_id") or payload["session_id"]
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


def _sub_agents(name: str, payload: Mapping[str, Any]) -> tuple[Seen, ...]:
    """One that begins. `subagentStop` does not say which of them has ended; when the turn is over, all have."""
    if name != "subagentStart" or text(payload, "subagent_id") is None:
        return ()
    kind = text(payload, "subagent_type") or "sub-agent"
    return (Seen(id=payload["subagent_id"], command=f"{kind}: {text(payload, 'task') or '?'}"),)


def write(name: str, answer: Answer) -> dict[str, object]:
    """The answer as Cursor reads it; never a permission, which is the person's to give."""
    if name == "stop":
        message = answer.block or answer.context
        return {"followup_message": cut(message)} if message else {}
    if name == "preToolUse":
        return {} if answer.tool_input is None else {"updated_input": dict(answer.tool_input)}
    return {"additional_context": cut(answer.context)} if answer.context else {}

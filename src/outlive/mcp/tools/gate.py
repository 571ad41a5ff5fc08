"""The tool `gate`: whether a session may stop now."""

from __future__ import annotations

from outlive.mcp.answer import Answer, framed
from outlive.mcp.tools.tool import Arguments, Call, Tool
from outlive.mcp.tools.visible_tasks import own_session
from outlive.sdk.outlive import adopt
from outlive.service.sessions import gate as gating


def gate(call: Call, _: Arguments) -> Answer:
    """Return whether the caller's session may stop now."""
    answer = gating.gate(call.home, own_session(call), call.caller.project, adopt)
    head = "You may stop." if answer.may_stop else "Wait: tasks still run, or endings were not reported yet."
    windows = gating.window_lines(answer, call.caller.project)
    return Answer(text=framed(head, [answer.reason, *windows]), document=gating.gate_document(call.home, answer))


TOOL = Tool(
    name="gate",
    title="May this session stop?",
    description="Return whether this session may stop, for which tasks it waits, and which are lost or not reported.",
    act=gate,
    reads_only=False,
)

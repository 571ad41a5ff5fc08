"""The tool `gate`: whether a session may stop, or go on, now."""

from __future__ import annotations

from outlive.client.sdk import adopt
from outlive.domain.digest import held_line
from outlive.mcp.tools.scope import own_session
from outlive.mcp.tools.tool import Arguments, Call, Tool
from outlive.mcp.words import Answer, framed
from outlive.service import gate as gating
from outlive.service.clock import utc_now


class Gate(Arguments):
    """What `gate` takes: nothing."""


def gate(call: Call, _: Gate) -> Answer:
    """The answer as of now."""
    answer = gating.gate(call.home, own_session(call), call.caller.project, adopt)
    head = "You may stop." if answer.may_stop else "Wait: there is something to wait for, or to read."
    windows = [held_line(task, window, utc_now(), call.caller.project) for task, window in answer.windows]
    return Answer(text=framed(head, [answer.reason, *windows]), document=gating.gate_document(call.home, answer))


TOOL = Tool(
    name="gate",
    title="May this session stop?",
    description="Whether this session may stop now: what it waits for, what is lost, what it has not been told.",
    takes=Gate,
    act=gate,
    reads_only=False,
)

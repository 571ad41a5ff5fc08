"""All tools, in the order in which a client lists them."""

from __future__ import annotations

from outlive.mcp.tools import (
    cancel,
    effects,
    gate,
    guard,
    hand_off,
    inbox,
    list,  # noqa: A004
    output,
    result,
    retry,
    run,
    send,
    show,
    wait,
)

TOOLS = tuple(
    module.TOOL
    for module in (run, list, show, output, wait, result, cancel, retry, send, effects, guard, inbox, hand_off, gate)
)

"""All tools of the MCP server, in the order in which a client lists them."""

from __future__ import annotations

from outlive.mcp.tools import (
    agent,
    cancel,
    effects,
    gate,
    guard,
    hand_off,
    inbox,
    list,  # noqa: A004 - the module has the name of its tool
    output,
    result,
    retry,
    run,
    send,
    show,
    transcript,
    wait,
)

TOOLS = tuple(
    module.TOOL
    for module in (
        *(run, agent, list, show, output, transcript, wait, result, cancel, retry, send, effects, guard),
        *(inbox, hand_off, gate),
    )
)

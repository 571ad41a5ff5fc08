"""All tools, in the order in which a client lists them."""

from __future__ import annotations

from outlive.mcp.tools import cancel, effects, gate, hand_off, inbox, list, output, result, run, send, show, wait  # noqa: A004

TOOLS = tuple(
    module.TOOL for module in (run, list, show, output, wait, result, cancel, send, effects, inbox, hand_off, gate)
)

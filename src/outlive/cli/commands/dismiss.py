"""`outlive dismiss`: close notices without reading them."""

from __future__ import annotations

from outlive.cli.commands.ack import close_named
from outlive.cli.parser import TRACE, Command, Given, option
from outlive.service.notices.inbox import dismiss


def act(given: Given) -> int:
    """Dismiss the notices that the user named."""
    return close_named(given, "dismiss", dismiss, "dismissed")


COMMAND = Command(
    name="dismiss",
    summary="close notices, so that no session gets them any more",
    usage="outlive dismiss NOTICE...",
    options=(
        option("--session ID", "dismiss for this session (default: the current session)"),
        TRACE,
    ),
    examples=(("outlive dismiss nt7k2m9q401ended", "close this notice; no session gets it any more"),),
)

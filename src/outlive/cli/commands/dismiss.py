"""`outlive dismiss`: close notices that nobody needs to read any more."""

from __future__ import annotations

from outlive.cli.commands.ack import close_named
from outlive.cli.parser import Command, Given, Option
from outlive.service.notices.inbox import dismiss


def act(given: Given) -> int:
    """Dismiss the notices that the user named."""
    return close_named(given, "dismiss", dismiss, "dismissed")


COMMAND = Command(
    name="dismiss",
    summary="close notices, so that no session gets them any more",
    usage="outlive dismiss NOTICE...",
    options=(
        Option(name="--session", metavar="ID", help="dismiss for this session (default: the current session)"),
        Option(
            name="--trace", help="write every decision about the session to a file in `traces/` of the state directory"
        ),
    ),
    examples=(("outlive dismiss nt7k2m9q401ended", "close this notice; no session gets it any more"),),
    act=act,
)

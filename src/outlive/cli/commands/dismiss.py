"""`outlive dismiss`: close notices that no session needs any more."""

from __future__ import annotations

from outlive.cli.commands.ack import close_named
from outlive.cli.parser import Command, Given, Option
from outlive.service.notices.inbox import dismiss


def act(given: Given) -> int:
    """Dismiss the named notices."""
    return close_named(given, "dismiss", dismiss, "dismissed")


COMMAND = Command(
    name="dismiss",
    summary="close notices that no session was told",
    usage="outlive dismiss NOTICE...",
    options=(
        Option(name="--session", metavar="ID", help="the session whose trace records it (default: this session)"),
        Option(name="--trace", help="write every decision to a file"),
    ),
    examples=(("outlive dismiss nt7k2m9q401ended", "no session is told of the notice any more"),),
    act=act,
)

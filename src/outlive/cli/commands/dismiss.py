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
    summary="close notices without anybody having been told",
    usage="outlive dismiss NOTICE...",
    options=(
        Option(name="--session", metavar="ID", help="whose trace it is written to (default: the one we run in)"),
        Option(name="--trace", help="write every decision to a file"),
    ),
    examples=(("outlive dismiss nt7k2m9q401ended", "no session is told of it any more"),),
    act=act,
)

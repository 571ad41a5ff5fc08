"""`outlive dismiss`: nobody needs to be told any more."""

from __future__ import annotations

from outlive.cli import place
from outlive.cli.options import Command, Given, Option
from outlive.cli.render import print_json
from outlive.domain.errors import UserError
from outlive.service.inbox import dismiss


def act(given: Given) -> int:
    """Dismiss the notices that were named."""
    if not given.words:
        raise UserError("dismiss needs at least one notice", "outlive dismiss NOTICE...")
    place.begin_trace(wanted=given.trace)
    done = dismiss(place.here(), given.words, place.session(given.session), place.project())
    if given.json:
        print_json({"dismissed": done})
    return 0


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

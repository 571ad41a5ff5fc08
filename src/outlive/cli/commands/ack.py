"""`outlive ack`: acknowledge the notices of a session."""

from __future__ import annotations

from outlive.cli import context
from outlive.cli.formatting import print_json
from outlive.cli.parser import Command, Given, Option
from outlive.domain.errors import UserError
from outlive.service.notices.inbox import acknowledge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def act(given: Given) -> int:
    """Acknowledge the named notices."""
    return close_named(given, "ack", acknowledge, "acknowledged")


def close_named(given: Given, verb: str, close: Callable[..., list[str]], outcome: str) -> int:
    """Close the named notices by a verb's function; print them with `--json`."""
    if not given.words:
        raise UserError(f"{verb} needs at least one notice", f"outlive {verb} NOTICE...")
    context.begin_trace(wanted=given.trace)
    done = close(context.here(), given.words, context.session(given.session), context.project())
    if given.json:
        print_json({outcome: done})
    return 0


COMMAND = Command(
    name="ack",
    summary="record that a session has received notices",
    usage="outlive ack NOTICE... [options]",
    details=("Only the session that is owed a notice, or a session that continues it, can acknowledge the\nnotice."),
    options=(
        Option(name="--session", metavar="ID", help="the session (default: this session)"),
        Option(name="--trace", help="write every decision to a file"),
    ),
    examples=(("outlive ack nt7k2m9q401ended --session s-1", "the notice is not told again"),),
    act=act,
)

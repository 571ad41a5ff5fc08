"""`outlive ack`: acknowledge the notices of a session."""

from __future__ import annotations

from outlive.cli import context
from outlive.cli.formatting import print_json
from outlive.cli.parser import TRACE, Command, Given, option
from outlive.domain.errors import UserError
from outlive.service.notices.inbox import acknowledge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def act(given: Given) -> int:
    """Acknowledge the notices that the user named."""
    return close_named(given, "ack", acknowledge, "acknowledged")


def close_named(given: Given, verb: str, close: Callable[..., list[str]], outcome: str) -> int:
    """Call the function `close` with the ids of the notices that the user named.

    With `--json`, the ids of the closed notices are printed.
    """
    if not given.words:
        raise UserError(f"{verb} needs the id of at least one notice", f"outlive {verb} NOTICE...")
    context.begin_trace(wanted=given.trace)
    done = close(context.here(), given.words, context.session(given.session), context.project())
    if given.json:
        print_json({outcome: done})
    return 0


COMMAND = Command(
    name="ack",
    summary="mark notices as received, so that they are not reported again",
    usage="outlive ack NOTICE... [options]",
    details=(
        "A session can acknowledge the notices that are reported to it, and the notices of tasks that it or a\n"
        "session of its lineage launched. (A lineage is the chain of sessions that continue each other.) If a notice\n"
        "is reported to no session, every session of the project can acknowledge the notice."
    ),
    options=(
        option("--session ID", "acknowledge for this session (default: the current session)"),
        TRACE,
    ),
    examples=(("outlive ack nt7k2m9q401ended --session s-1", "mark this notice as received"),),
)

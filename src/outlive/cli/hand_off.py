"""`outlive hand-off`: the digest of a boundary, again."""

from __future__ import annotations

from outlive.cli import place
from outlive.cli.options import Command, Given, Option
from outlive.cli.render import print_json
from outlive.domain.errors import UserError
from outlive.keeper.launching import launch_adopter
from outlive.service.clock import utc_now
from outlive.service.hand_off import hand_off, hand_off_document
from outlive.service.inbox import peek
from outlive.service.reconcile import reconcile


def act(given: Given) -> int:
    """Print it; nothing counts as told by this."""
    if given.words:
        raise UserError("hand-off takes no words", "`outlive hand-off --help` shows what it takes")
    place.begin_trace(wanted=given.trace)
    home = place.here()
    session, project = place.own_session(given.session), place.project()
    reconcile(home, utc_now(), None, launch_adopter)
    owed, tellings = peek(home, session, project)
    if owed is None:
        raise UserError(
            f"session {session} was never heard of in {project}", "`outlive session begin` records it; or cd there"
        )
    handed = hand_off(home, owed, tellings)
    if given.json:
        print_json(hand_off_document(home, handed))
    elif handed.text:
        print(handed.text)
    return 0


COMMAND = Command(
    name="hand-off",
    summary="what a session should know of background tasks before it acts",
    usage="outlive hand-off [options]",
    details="What `session begin` prints; printed again it changes nothing. Nothing to say, nothing printed.",
    options=(
        Option(name="--session", metavar="ID", help="the session (default: the one we run in)"),
        Option(name="--trace", help="write every decision to a file"),
    ),
    examples=(("outlive hand-off --session s-2", "what runs, what ended unseen, what was lost"),),
    act=act,
)

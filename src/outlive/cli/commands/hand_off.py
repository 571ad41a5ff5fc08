"""`outlive hand-off`: print the hand-off of a session again."""

from __future__ import annotations

from outlive.cli import context
from outlive.cli.formatting import print_json
from outlive.cli.parser import Command, Given, Option
from outlive.domain.errors import UserError
from outlive.keeper.spawn import launch_adopter
from outlive.service.clock import utc_now
from outlive.service.maintenance.reconcile import reconcile
from outlive.service.notices.inbox import peek
from outlive.service.sessions.hand_off import hand_off_again, hand_off_document


def act(given: Given) -> int:
    """Print the hand-off; no notice counts as presented."""
    context.begin_trace(wanted=given.trace)
    home = context.here()
    session, project = context.own_session(given.session), context.project()
    reconcile(home, utc_now(), None, launch_adopter)
    seen = peek(home, session, project)
    if seen.owed is None:
        raise UserError(
            f"session {session} was never heard of in {project}", "`outlive session begin` records it; or cd there"
        )
    handed = hand_off_again(home, seen.owed, seen.tellings)
    if given.json:
        print_json(hand_off_document(home, handed))
    elif handed.text:
        print(handed.text)
    return 0


COMMAND = Command(
    name="hand-off",
    summary="print what a session should know of background tasks before it acts",
    usage="outlive hand-off [options]",
    refuses_words=True,
    details=(
        "This is what `session begin` prints. It can be printed again without any effect. If there is\n"
        "nothing to say, the command prints nothing."
    ),
    options=(
        Option(name="--session", metavar="ID", help="the session (default: this session)"),
        Option(name="--trace", help="write every decision to a file"),
    ),
    examples=(
        ("outlive hand-off --session s-2", "the tasks that run, that ended without being told, or that were lost"),
    ),
    act=act,
)

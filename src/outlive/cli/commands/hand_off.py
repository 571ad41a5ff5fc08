"""`outlive hand-off`: print the hand-off of a session again.

The hand-off is the summary of background tasks that a session gets when it begins or continues.
"""

from __future__ import annotations

from outlive.cli import context
from outlive.cli.formatting import print_json
from outlive.cli.parser import TRACE, Command, Given, option
from outlive.domain.errors import UserError
from outlive.keeper.spawn import launch_adopter
from outlive.service.clock import utc_now
from outlive.service.maintenance.reconcile import reconcile
from outlive.service.notices.inbox import peek
from outlive.service.sessions.hand_off import hand_off_again, hand_off_document


def act(given: Given) -> int:
    """Print the hand-off. This does not count as a delivery of the notices in it."""
    context.begin_trace(wanted=given.trace)
    home = context.here_for_reading()
    session, project = context.own_session(given.session), context.project()
    reconcile(home, utc_now(), None, launch_adopter)
    seen = peek(home, session, project)
    if seen.owed is None:
        raise UserError(
            f"session {session} is not known in {project}",
            "`outlive session begin` records a session; if the session belongs to another project, cd to that project",
        )
    handed = hand_off_again(home, seen.owed, seen.tellings)
    if given.json:
        print_json(hand_off_document(home, handed))
    elif handed.text:
        print(handed.text)
    return 0


COMMAND = Command(
    name="hand-off",
    summary="print what a session should know about background tasks before it acts",
    usage="outlive hand-off [options]",
    refuses_words=True,
    details=(
        "This command prints the same text as `session begin`. The notices in the text do not count as reported, so\n"
        "the command can be repeated. If there is nothing to report, it prints nothing."
    ),
    options=(
        option("--session ID", "print the hand-off of this session (default: the current session)"),
        TRACE,
    ),
    examples=(
        (
            "outlive hand-off --session s-2",
            "print the tasks that run, that ended without being reported, and that were lost",
        ),
    ),
)

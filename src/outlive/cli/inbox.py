"""`outlive inbox`: what a session is owed, told once."""

from __future__ import annotations

import os
import sys

from outlive.cli import place
from outlive.cli.options import Command, Given, Option
from outlive.cli.render import print_json
from outlive.domain.errors import UserError
from outlive.keeper.launching import launch_adopter
from outlive.service.clock import utc_now
from outlive.service.inbox import claim, peek
from outlive.service.reconcile import reconcile
from outlive.service.telling import notice_documents, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.service.inbox import Claim


def act(given: Given) -> int:
    """Claim, print, and only then call it presented."""
    if given.words:
        raise UserError("inbox takes no words", "`outlive inbox --help` shows what it takes")
    if given.follow and given.peek:
        raise UserError("--follow tells and --peek does not", "give one of them")
    place.begin_trace(wanted=given.trace)
    home = place.here()
    session, project = place.own_session(given.session), place.project()
    if given.follow:
        return _follow(home, session, project, given)
    reconcile(home, utc_now(), None, launch_adopter)
    if given.peek:
        owed, tellings = peek(home, session, project)
        told_to = None if owed is None else owed.session
        if given.json:
            print_json({"notices": notice_documents(home, tellings, told_to)})
        else:
            _print(text_of(home, tellings, told_to))
        return 0
    with claim(home, session, project, is_turn=True) as claimed:
        told_to = None if claimed.owed is None else claimed.owed.session
        if given.json:
            print_json({"notices": notice_documents(home, claimed.tellings, told_to)})
        else:
            _print(text_of(home, claimed.tellings, told_to))
        _presented(claimed, given)
    return 0


def _follow(home: Home, session: str, project: str, given: Given) -> int:
    """One line of JSON for each notice, for as long as somebody reads."""
    from outlive.service.follow_inbox import follow_inbox

    for claimed in follow_inbox(home, session, project, launch_adopter, reader=1):
        told_to = None if claimed.owed is None else claimed.owed.session
        for document in notice_documents(home, claimed.tellings, told_to):
            print_json(document)
        _presented(claimed, given)
    return 0


def _presented(claimed: Claim, given: Given) -> None:
    sys.stdout.flush()  # a reader that has left is noticed here, and what it did not get stays pending
    if given.ack and claimed.tellings:
        claimed.acknowledged()
    else:
        claimed.presented()


def _print(text: str) -> None:
    if text:
        print(text)
    elif os.isatty(1):
        print("nothing to tell")


COMMAND = Command(
    name="inbox",
    summary="tell a session the endings that it is owed, each once",
    usage="outlive inbox [options]",
    details=(
        "What is printed counts as presented; the session's next call shows that it was received. What was\n"
        "presented and never confirmed is told again at the next boundary. Nothing to tell, nothing printed."
    ),
    options=(
        Option(name="--session", metavar="ID", help="the session (default: the one we run in)"),
        Option(name="--peek", help="only look: nothing counts as told"),
        Option(name="--follow", help="block, and print each notice as a line of JSON when it comes"),
        Option(name="--ack", help="count as received what was printed"),
        Option(name="--trace", help="write every decision to a file"),
    ),
    examples=(
        ("outlive inbox --session s-1", "what s-1 has not been told yet"),
        ("outlive inbox --follow --session s-1", "costs nothing until something ends"),
    ),
    act=act,
)

"""`outlive inbox`: print the notices for a session. Each one is printed only once."""

from __future__ import annotations

import os
import sys

from outlive.cli import context
from outlive.cli.formatting import print_json
from outlive.cli.parser import TRACE, Command, Given, option
from outlive.domain.errors import UserError
from outlive.keeper.spawn import launch_adopter
from outlive.service.clock import utc_now
from outlive.service.maintenance.reconcile import reconcile
from outlive.service.notices.compose import notice_documents, text_of
from outlive.service.notices.inbox import claim, peek

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.service.notices.inbox import Claim


def act(given: Given) -> int:
    """Print the pending notices, and mark them as presented.

    First the notices are reserved for this call, so that no other call prints them too.
    """
    if given.follow and given.peek:
        raise UserError(
            "--follow and --peek cannot be used together",
            "give --follow, which marks notices as reported, or --peek, which does not",
        )
    context.begin_trace(wanted=given.trace)
    home = context.here()
    session, project = context.own_session(given.session), context.project()
    if given.follow:
        return _follow(home, session, project, given)
    reconcile(home, utc_now(), None, launch_adopter)
    if given.peek:
        seen = peek(home, session, project)
        if given.json:
            print_json({"notices": notice_documents(home, seen.tellings, seen.session), "more": seen.more})
        else:
            _print(text_of(home, seen.tellings, seen.session, seen.more))
        return 0
    with claim(home, session, project, is_turn=True) as claimed:
        told_to = None if claimed.owed is None else claimed.owed.session
        if given.json:
            print_json({"notices": notice_documents(home, claimed.tellings, told_to), "more": claimed.more})
        else:
            _print(text_of(home, claimed.tellings, told_to, claimed.more))
        if claimed.owed is None:
            context.note_unknown_session(home, given.session)
        _presented(claimed, given)
    return 0


def _follow(home: Home, session: str, project: str, given: Given) -> int:
    """Print one line of JSON for each notice, until the reader of the output exits."""
    from outlive.linux.reader_gone import reader_of_output, watch_departures
    from outlive.service.notices.follow_inbox import follow_inbox

    departures = watch_departures(ends=(reader_of_output(),))
    for claimed in follow_inbox(home, session, project, launch_adopter, departures=departures):
        told_to = None if claimed.owed is None else claimed.owed.session
        for document in notice_documents(home, claimed.tellings, told_to):
            print_json(document)
        _presented(claimed, given)
    return 0


def _presented(claimed: Claim, given: Given) -> None:
    sys.stdout.flush()  # raises an error if the reading program has exited, so that the notices stay pending
    if given.ack and claimed.tellings:
        claimed.acknowledged()
    else:
        claimed.presented()


def _print(text: str) -> None:
    if text:
        print(text)
    elif os.isatty(1):
        print("no new notices")


COMMAND = Command(
    name="inbox",
    summary="print the endings that were not reported to a session yet, each once",
    usage="outlive inbox [options]",
    refuses_words=True,
    details=(
        "At most 40 notices are printed at once. `more` in JSON, or the last line, gives the number of further\n"
        "notices. A later `inbox`, `gate` or `session end` of the same session confirms that the printed notices\n"
        "arrived. `result` confirms the notices of its task. Notices that were never confirmed are printed again\n"
        "when the session next begins, resumes, or is compacted. If there are no notices, the command prints\n"
        "`no new notices` on a terminal, and nothing otherwise."
    ),
    options=(
        option("--session ID", "print the notices for this session (default: the current session)"),
        option("--peek", "print the notices, but do not count them as reported"),
        option("--follow", "block, and print each new notice as a line of JSON"),
        option("--ack", "mark the printed notices as received"),
        TRACE,
    ),
    examples=(
        ("outlive inbox --session s-1", "print the endings that were not reported to s-1 yet"),
        ("outlive inbox --follow --session s-1", "sleep until a task ends, and print its notice"),
    ),
)

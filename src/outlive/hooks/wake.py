"""Waking an idle session: asleep beside it until something ends, then one message, then gone.

The client starts this when a turn is over, and takes our exit code 2 with what we say as a reason
for a new turn. The inbox is the only truth: what is said here was claimed there, so that neither two
of us nor a hook in between can say it again. The end of the client's process ends us.
"""

from __future__ import annotations

import os

from outlive.hooks import marks
from outlive.hooks.event import Answer
from outlive.keeper.launching import launch_adopter
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.follow_inbox import follow_inbox
from outlive.service.inbox import owed_to, peek, running_for
from outlive.service.telling import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.hooks.event import Event, Put


def wake(home: Home, event: Event, project: str, put: Put) -> None:
    """Watch, if there is anything to watch and nobody does; return when it has been said, or need not be."""
    if not event.can_be_woken or event.process is None:
        return
    try:
        life = os.pidfd_open(event.process)
    except OSError:
        return
    if not _is_waited_for(home, event, project) or marks.watch(home, event.session) is None:
        return
    for claimed in follow_inbox(home, event.session, project, launch_adopter, life=life):
        if claimed.owed is not None:
            put(Answer(wake=text_of(home, claimed.tellings, claimed.owed.session)))
            claimed.presented()
            return


def _is_waited_for(home: Home, event: Event, project: str) -> bool:
    owed, tellings = peek(home, event.session, project)
    if owed is None:
        return False
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        again = owed_to(ledger, event.session, project)
        return any(each.notice.state == "pending" for each in tellings) or (
            again is not None and bool(running_for(ledger, again))
        )

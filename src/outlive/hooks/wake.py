"""Waking an idle session: asleep beside it until something ends, then one message, then gone.

The client starts this when a turn is over, and takes our exit code 2 with what we say as a reason
for a new turn. The inbox is the only truth: what is said here was claimed there, so that neither two
of us nor a hook in between can say it again. The end of the client's process ends us.
"""

from __future__ import annotations

import os

from outlive.hooks import marks
from outlive.hooks.event import Answer
from outlive.hooks.poke import poke
from outlive.keeper.launching import launch_adopter
from outlive.ledger.inbox import Inbox
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.follow_inbox import follow_inbox
from outlive.service.inbox import owed_to, running_for
from outlive.service.telling import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from outlive.bundle.home import Home
    from outlive.hooks.event import Event, Put
    from outlive.service.inbox import Claim


def wake(home: Home, event: Event, project: str, put: Put) -> None:
    """Watch, if there is anything to watch and nobody does; return when it has been said, or need not be."""
    if event.woken_by == "hook":
        by_socket = (lambda: poke(home, event.session, os.environ)) if event.client == "claude" else None
        watch(home, event, project, lambda text: put(Answer(wake=text)), by_socket)
    # Its turn asks for itself what there is: a nudge that leads to no turn must not have told anything.
    if event.woken_by == "nudge" and next(_claims(home, event, project), None) is not None:
        put(Answer(wake="something has ended"))


def watch(
    home: Home, event: Event, project: str, say: Callable[[str], None], poke: Callable[[], bool] | None = None
) -> None:
    """Sleep until something is to be told, tell it by `say`, and return; or when the client has ended.

    If a `poke` is enough for the session to take a turn, what is to be told is left to that.
    """
    for claimed in _claims(home, event, project):
        if poke is not None:
            claimed.release()
            if poke():
                return
            poke = None
        elif claimed.owed is not None:
            say(text_of(home, claimed.tellings, claimed.owed.session))
            claimed.presented()
            return


def _claims(home: Home, event: Event, project: str) -> Iterator[Claim]:
    """What is to be told, as it comes, if anything is waited for and nobody else watches."""
    if event.process is None or not _is_waited_for(home, event, project):
        return
    try:
        life = os.pidfd_open(event.process)
    except OSError:
        return
    if marks.watch(home, event.session) is None:
        return
    yield from follow_inbox(home, event.session, project, launch_adopter, life=life)


def _is_waited_for(home: Home, event: Event, project: str) -> bool:
    """Whether anything runs for it, or has ended and not been told."""
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        owed = owed_to(ledger, event.session, project)
        if owed is None:
            return False
        pending = any(notice.state == "pending" for notice in Inbox(ledger).owed(owed.origins))
        return pending or bool(running_for(ledger, owed))

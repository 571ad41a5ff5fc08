"""Waking an idle session: asleep beside it until something ends, then one message, then gone.

The client starts this when a turn is over, or when a session goes on that has taken none yet. It takes our
exit code 2 with what we say as a reason for a new turn. The inbox is the only truth: what is said here was
claimed there, so that neither two of us nor a hook in between can say it again. The end of the client's
process ends us.
"""

from __future__ import annotations

import os

from outlive.bundle.kernel import watch_modifications
from outlive.bundle.processes import has_exited
from outlive.hooks import marks
from outlive.hooks.event import Answer
from outlive.hooks.hearing import wait_until
from outlive.hooks.poke import poke
from outlive.hooks.process import mark
from outlive.keeper.launching import launch_adopter
from outlive.ledger.inbox import Inbox
from outlive.ledger.sessions import Sessions
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


_A_BEGINNING_TAKES_AT_MOST_S = 5.0


def wake(home: Home, event: Event, project: str, put: Put) -> None:
    """Watch, if there is anything to watch and nobody does; return when it has been said, or need not be."""
    if event.woken_by == "hook":
        _tell(home, event, project, put)
    # Its turn asks for itself what there is: a nudge that leads to no turn must not have told anything.
    if event.woken_by == "nudge":
        when_owed(home, event, project, lambda: put(Answer(wake="something has ended")))


def when_owed(home: Home, event: Event, project: str, nudge: Callable[[], None]) -> None:
    """Sleep until something is to be told, and leave that to whoever is nudged; not if nothing will be."""
    for claimed in _claims(home, event, project):
        claimed.release()
        nudge()
        return


def _tell(home: Home, event: Event, project: str, put: Put) -> None:
    """What is to be told is left to the prompt that a message leads to; if none does, it is said here."""
    may_poke = event.client == "claude"
    for claimed in _claims(home, event, project):
        if may_poke:
            claimed.release()
            if poke(home, event.session, os.environ):
                return
            may_poke = False
        elif claimed.owed is not None:
            put(Answer(wake=text_of(home, claimed.tellings, claimed.owed.session)))
            claimed.presented()
            return


def _claims(home: Home, event: Event, project: str) -> Iterator[Claim]:
    """What is to be told, as it comes, if anything is waited for, and as long as nobody else watches."""
    if event.process is None:
        return
    try:
        life = os.pidfd_open(event.process)
    except OSError:
        return
    if event.source != "startup":
        _until_begun(home, event, project)
    # Whoever leaves lets go first, and looks once more: what was launched meanwhile may have been left to it.
    while not has_exited(life) and _is_waited_for(home, event, project):
        watch = marks.watch(home, event.session, event.process, life)
        if watch is None:
            return
        try:
            yield from follow_inbox(home, event.session, project, launch_adopter, life=life)
        finally:  # also when all is said: the turn that this leads to may be over before our process is
            os.close(watch)


def _until_begun(home: Home, event: Event, project: str) -> None:
    """A session that goes on is idle before its first turn: whoever records that has been started together with us."""
    process, changes = mark(event.process), watch_modifications(home.path)

    def has_begun() -> bool:
        with SqliteLedger(home.ledger, utc_now()) as ledger:
            found = Sessions(ledger).find(event.session, project)
        return found is not None and found.process == process

    wait_until(has_begun, changes, _A_BEGINNING_TAKES_AT_MOST_S)
    if changes is not None:
        os.close(changes)


def _is_waited_for(home: Home, event: Event, project: str) -> bool:
    """Whether anything runs for it, or has ended and not been told."""
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        owed = owed_to(ledger, event.session, project)
        if owed is None:
            return False
        pending = any(notice.state == "pending" for notice in Inbox(ledger).owed(owed.origins))
        return pending or bool(running_for(ledger, owed))

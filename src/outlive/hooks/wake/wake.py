"""The watcher that wakes an idle session when one of its tasks ends.

If the hook exits with code 2, the client starts a turn with the hook's text as the reason. Each notice is claimed in
the inbox before it is presented here, so that no other watcher or hook presents it too. The watcher ends when the
client's process or the session ends. The watcher also ends when the other end of the client's stdin is closed, because
otherwise Claude Code would wait half a minute for this hook before it exits.
"""

from __future__ import annotations

import os

from outlive.code_copy import carry_in_own_process
from outlive.hooks.client_process import mark
from outlive.hooks.event import Answer
from outlive.hooks.state import session_files
from outlive.hooks.wake.claude_message import poke
from outlive.hooks.wake.wait_for_change import wait_until
from outlive.keeper.spawn import launch_adopter
from outlive.ledger.connection import stop_hurrying
from outlive.ledger.notices import Notices
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.linux.reader_gone import has_departed, open_input_of, watch_departures
from outlive.linux.syscalls import watch_modifications
from outlive.service.clock import utc_now
from outlive.service.notices.compose import text_of
from outlive.service.notices.follow_inbox import follow_inbox
from outlive.service.notices.inbox import awaited_by, owed_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from outlive.bundle.home import Home
    from outlive.hooks.event import Event, Put
    from outlive.service.notices.inbox import Claim


_LONGEST_BEGINNING_S = 5.0


def wake(home: Home, event: Event, project: str, put: Put) -> None:
    """Wake the session when one of its tasks ends. Return if no watcher is needed."""
    stop_hurrying()
    if event.woken_by == "hook":
        _wake_by_message(home, event, project, put)
    # A nudge only asks the client for a turn, and the hooks of this turn claim the notices. This hook presents no
    # notices, because the notices would count as presented even if the nudge led to no turn.
    if event.woken_by == "nudge":
        when_owed(home, event, project, lambda: put(Answer(wake="a background task has ended")))


def when_owed(home: Home, event: Event, project: str, nudge: Callable[[], None]) -> None:
    """Call `nudge` once when there are notices for the session.

    This function does not present the notices.
    """
    for claimed in _claims(home, event, project):
        claimed.release()
        nudge()
        return


def _wake_by_message(home: Home, event: Event, project: str, put: Put) -> None:
    """Send the session a message to wake it. If this fails, answer with the notices."""
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
    """Yield claims of the session's notices while this process is its watcher."""
    if event.process is None:
        return
    try:
        pidfd = os.pidfd_open(event.process)
    except OSError:
        return
    departures = watch_departures(inputs=(open_input_of(event.process),), processes=(pidfd,))
    if event.source != "startup":
        _wait_until_begun(home, event, project)
    # After a watcher gives up its role, it checks for running tasks again. A task may have been launched in between.
    # The turn of this launch started a new watcher, but that watcher has exited if the role was not free yet.
    while not has_departed(departures) and _is_waited_for(home, event, project):
        carry_in_own_process(home.path)  # the installation may be replaced during a long sleep
        watch = session_files.watch(home, event.session, event.process, departures)
        if watch is None:
            return
        try:
            yield from follow_inbox(
                home, event.session, project, launch_adopter, departures=departures, while_owed=True
            )
        finally:  # a claim starts a turn, which may need a new watcher before this process exits
            os.close(watch)


def _wait_until_begun(home: Home, event: Event, project: str) -> None:
    """Wait until the hook for the session's beginning has recorded the boundary.

    A resumed session is idle at once. So the client starts that hook and this hook at the same time.
    """
    process, changes = mark(event.process), watch_modifications(home.path)

    def has_begun() -> bool:
        with SqliteLedger(home.ledger, utc_now()) as ledger:
            found = Sessions(ledger).find(event.session, project)
        return found is not None and found.process == process

    wait_until(has_begun, changes, _LONGEST_BEGINNING_S)
    if changes is not None:
        os.close(changes)


def _is_waited_for(home: Home, event: Event, project: str) -> bool:
    """Return whether a notice that wakes the session is open or may still come."""
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        owed = owed_to(ledger, event.session, project)
        if owed is None or owed.session.ended_at is not None:
            return False
        # Claimed notices count too, because this watcher presents them if the process that claimed them exits without
        # presenting them.
        untold = Notices(ledger).open_states(owed.origins, owed.tasks, "wake")
        return bool(untold) or owed.may_inherit or bool(awaited_by(ledger, owed))

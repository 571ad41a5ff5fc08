"""The process that wakes an idle session when one of its tasks ends.

It is a hook that the client keeps running. If it exits with code 2, the client starts a turn with the text that the
hook has printed. Before a notice is printed, it is reserved for this process, so that no other hook presents it too.
The process exits when the client or the session has ended. It also exits when the client closes its input, because
otherwise Claude Code would wait half a minute for this hook.
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
    """Wait until one of the session's tasks ends, and then wake the session.

    Returns without waking it if no task runs, or if another process of this client already waits to do so.
    """
    stop_hurrying()
    if event.woken_by == "hook":
        _wake_by_message(home, event, project, put)
    # With `nudge`, the text only makes the client start a turn, and the hooks of this turn present the notices. They
    # are not presented here. They would count as presented even if the client started no turn.
    if event.woken_by == "nudge":
        when_owed(home, event, project, lambda: put(Answer(wake="a background task has ended")))


def when_owed(home: Home, event: Event, project: str, nudge: Callable[[], None]) -> None:
    """Wait until there are notices for the session, and then call `nudge` once.

    This function does not present the notices.
    """
    for claimed in _claims(home, event, project):
        claimed.release()
        nudge()
        return


def _wake_by_message(home: Home, event: Event, project: str, put: Put) -> None:
    """Send the session a message to wake it. If that fails, print the notices instead."""
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
    """Reserve the session's notices for this process, and yield each reservation.

    This goes on as long as this is the process that may wake the session.
    """
    if event.process is None:
        return
    try:
        pidfd = os.pidfd_open(event.process)
    except OSError:
        return
    departures = watch_departures(inputs=(open_input_of(event.process),), processes=(pidfd,))
    if event.source != "startup":
        _wait_until_begun(home, event, project)
    # A task may be launched just before this process stops watching. Then no other process would watch for its end: the
    # turn of the launch started one, but it has exited, because this one was still watching. So check for running tasks
    # again.
    while not has_departed(departures) and _is_waited_for(home, event, project):
        carry_in_own_process(home.path)  # during a long sleep, the installed version of Outlive may be replaced
        watch = session_files.watch(home, event.session, event.process, departures)
        if watch is None:
            return
        try:
            yield from follow_inbox(
                home, event.session, project, launch_adopter, departures=departures, while_owed=True
            )
        finally:  # waking starts a turn, and that turn starts a new process that must be able to watch
            os.close(watch)


def _wait_until_begun(home: Home, event: Event, project: str) -> None:
    """Wait until another hook has recorded that the session begins.

    A resumed session is idle at once, so the client starts that hook and this one at the same time.
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
    """Return whether there is a notice that wakes the session, or one may still come."""
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        owed = owed_to(ledger, event.session, project)
        if owed is None or owed.session.ended_at is not None:
            return False
        # Notices that another process has reserved count, too. If that process exits without presenting them, this one
        # does it.
        untold = Notices(ledger).open_states(owed.origins, owed.tasks, "wake")
        return bool(untold) or owed.may_inherit or bool(awaited_by(ledger, owed))

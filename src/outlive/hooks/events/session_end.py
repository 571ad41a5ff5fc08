"""The handler of a session's end.

It ends the session and its foreground tasks in a detached process.
"""

from __future__ import annotations

import os
from select import POLLIN, poll

from outlive.hooks.client_process import detach, mark
from outlive.hooks.state import session_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.hooks.event import Event


_PATIENCE_MS = 10_000


def end(home: Home, event: Event, project: str) -> None:
    """End the session in a detached process, because clients wait only a second."""
    process = mark(event.process)
    pidfd = _open(event.process) if event.lets_go else None
    if event.lets_go and pidfd is None:
        return  # without a pidfd, this hook cannot see whether the client's process exits
    detach(lambda: _end(home, event, project, process, pidfd))


def _end(home: Home, event: Event, project: str, process: str | None, pidfd: int | None) -> None:
    if pidfd is not None and not _exits(pidfd):
        return
    # These modules are imported only in the detached process. They are large, and the client would wait for their
    # import.
    from outlive.keeper.spawn import launch_adopter  # noqa: PLC0415
    from outlive.ledger.sessions import Sessions  # noqa: PLC0415
    from outlive.ledger.sqlite import SqliteLedger  # noqa: PLC0415
    from outlive.service.clock import utc_now  # noqa: PLC0415
    from outlive.service.sessions import lineage  # noqa: PLC0415

    session_files.forget(home, event.session)
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        session = Sessions(ledger).find(event.session, project)
    # Another client process may have resumed the session in the meantime. Then the exit of the old process must not end
    # it.
    if session is not None and (process is None or session.process in (None, process)):
        lineage.end(home, event.session, project, event.reason, launch_adopter)


def _open(process: int | None) -> int | None:
    try:
        return None if process is None else os.pidfd_open(process)
    except OSError:
        return None


def _exits(pidfd: int) -> bool:
    """Return whether a process exits within `_PATIENCE_MS` milliseconds."""
    waiting = poll()
    waiting.register(pidfd, POLLIN)
    return bool(waiting.poll(_PATIENCE_MS))

"""A session ends: its foreground tasks end with it, in a process that the client does not wait for."""

from __future__ import annotations

import os
from select import POLLIN, poll

from outlive.hooks import marks
from outlive.hooks.process import detach, mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.hooks.event import Event


_PATIENCE_MS = 10_000


def end(home: Home, event: Event, project: str) -> None:
    """Clients give this a second; ending a process tree may take longer."""
    process = mark(event.process)
    life = _open(event.process) if event.lets_go else None
    if event.lets_go and life is None:
        return  # the end of a process that we cannot see is not ours to tell
    detach(lambda: _end(home, event, project, process, life))


def _end(home: Home, event: Event, project: str, process: str | None, life: int | None) -> None:
    if life is not None and not _exits(life):
        return
    # Only now, when nobody waits: what it takes to end tasks is a good part of the program.
    from outlive.keeper.launching import launch_adopter  # noqa: PLC0415
    from outlive.ledger.sessions import Sessions  # noqa: PLC0415
    from outlive.ledger.sqlite import SqliteLedger  # noqa: PLC0415
    from outlive.service import sessions  # noqa: PLC0415
    from outlive.service.clock import utc_now  # noqa: PLC0415

    marks.forget(home, event.session)
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        session = Sessions(ledger).find(event.session, project)
    # Resumed elsewhere meanwhile, it lives, and it is not its old process's to end.
    if session is not None and (process is None or session.process in (None, process)):
        sessions.end(home, event.session, project, event.reason, launch_adopter)


def _open(process: int | None) -> int | None:
    try:
        return None if process is None else os.pidfd_open(process)
    except OSError:
        return None


def _exits(life: int) -> bool:
    """Whether a process ends before long."""
    waiting = poll()
    waiting.register(life, POLLIN)
    return bool(waiting.poll(_PATIENCE_MS))

"""The wait of a hook at the end of a headless session's turn.

A headless client runs one prompt without a user and exits after its turn, possibly before its tasks end. So the hook
sleeps until no task runs. A hook that did not sleep could only refuse the end of the turn. Then the model would take
one turn after another, although no task has ended.
"""

from __future__ import annotations

import os

from outlive.domain.errors import UserError
from outlive.domain.notices.notice_text import frame
from outlive.domain.text.sanitize import one_line
from outlive.domain.text.units import parse_duration
from outlive.hooks.event import Answer
from outlive.hooks.response import Response
from outlive.hooks.state import session_files
from outlive.keeper.spawn import launch_adopter
from outlive.ledger.connection import stop_hurrying
from outlive.linux.reader_gone import has_departed, watch_departures
from outlive.linux.syscalls import signal
from outlive.service.notices.compose import new_mark, text_of
from outlive.service.sessions.gather_endings import Gathering

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from outlive.bundle.home import Home
    from outlive.hooks.event import Event, Put
    from outlive.service.notices.inbox import Claim

CEILING = "OUTLIVE_HEADLESS_WAIT"
_CEILING_S = 600.0
_SERVER_HEAD = "This session does not wait for a server."


def sleep_and_tell(home: Home, event: Event, project: str, put: Put) -> bool:
    """Sleep until no task of the session runs, and present the notices.

    Returns whether notices were presented.
    """
    ceiling_s = _ceiling_s(os.environ)
    pidfd = _open(event.process)
    if pidfd is None:
        return False
    # The client expects no fast reply here, so remove the hook's deadline and its short limit for waits on locks.
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    stop_hurrying()
    departures = watch_departures(
        ends=(1,), processes=(pidfd,), changes=(session_files.replace(home, event.session, "sleeper"),)
    )
    wait = Gathering(
        home,
        event.session,
        project,
        departures=departures,
        ceiling_s=ceiling_s,
        ignored=frozenset(session_files.word(home, event.session, "unawaited").split()),
        is_failure_urgent=not event.is_again,
    )
    with wait:
        for claimed in wait.claims(launch_adopter):
            # If the client has exited, no model reads the reply, so the notices must not count as presented.
            if not has_departed(departures):
                _present(home, claimed, _server_text(wait), put)
                _remember_unawaited(home, event, wait)
                return True
            return False
        text = "" if has_departed(departures) else _server_text(wait)
        if text:
            put(Answer(context=text))
        _remember_unawaited(home, event, wait)
        return bool(text)


def _present(home: Home, claimed: Claim, more: str, put: Put) -> None:
    assert claimed.owed is not None  # noqa: S101 - if there are notices, there is a session to present them to
    text = text_of(home, claimed.tellings, claimed.owed.session)
    put(Answer(context=f"{text}\n\n{more}" if more else text))
    claimed.presented()


def _remember_unawaited(home: Home, event: Event, wait: Gathering) -> None:
    """Remember the tasks for which later stops of this session do not wait.

    If the wait has reached its time limit, these are all tasks that still run. Otherwise, these are only the tasks that
    are servers.
    """
    given_up = [*wait.servers, *(task.id for task in wait.awaited if wait.is_late)]
    if given_up:
        known = session_files.word(home, event.session, "unawaited").split()
        session_files.set_word(home, event.session, "unawaited", " ".join([*known, *given_up]))


def _server_text(wait: Gathering) -> str:
    """Return a text about the running tasks that are servers, or an empty string."""
    if not wait.servers:
        return ""
    commands = {task.id: one_line(task.launch.command, 60) for task in wait.launched}
    lines = [
        f"task {task} ({commands.get(task, '?')}) listens on port {port} and has printed nothing for a minute"
        for task, port in wait.servers.items()
    ]
    ids = " ".join(wait.servers)
    return frame(
        new_mark(),
        _SERVER_HEAD,
        (
            *lines,
            f"a server continues after this session; to end the server: outlive cancel {ids}",
            f"if a task is not a server and you need its result: outlive wait {ids}",
            "no session waits for a server that is launched with `outlive run --notify failure`",
        ),
    )


def _ceiling_s(environ: Mapping[str, str]) -> float:
    """Return the most seconds that a headless session waits for its tasks.

    0 means that it does not wait. A wrong setting raises no error, and the default is used. After an error, the hook
    would not reply, and the model would never read how its tasks ended.
    """
    text = environ.get(CEILING, "").strip()
    if text in {"", "0"}:
        return 0.0 if text else _CEILING_S
    try:
        return parse_duration(text).total_seconds()
    except UserError as error:
        Response().report(f"{CEILING}: {error.message}; write a duration such as 90s, 10m or 1h; 0 means no wait")
        return _CEILING_S


def _open(process: int | None) -> int | None:
    try:
        return None if process is None else os.pidfd_open(process)
    except OSError:
        return None

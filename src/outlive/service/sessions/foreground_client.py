"""The client whose end also ends a foreground task."""

from __future__ import annotations

import os

from outlive.bundle.attempt import AttemptFiles
from outlive.bundle.record import open_record
from outlive.keeper.exit_watch import read_identity
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.linux.processes import open_verified
from outlive.service.clock import utc_now
from outlive.service.sessions.liveness import is_over, process_of
from outlive.service.tasks.launch_context import own_session_of, parent_of, session_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from outlive.bundle.home import Home


def client_of(home: Home, environ: Mapping[str, str], given: str | None, project: str) -> int | None:
    """Return a pidfd of the client whose end also ends a foreground task.

    The client is that of the session `given`, or of the session in which this process runs. Inside an agent, it is the
    client that runs the agent. The session that launched the agent may live much longer, so its client is not used.
    Returns None if no living client is known.
    """
    own = given or own_session_of(environ)
    found = _client_of_session(home, own, project)
    if found is None:
        found = _client_of_agent(home, environ)
    if found is None and own is None:
        found = _client_of_session(home, session_of(environ), project)
    return found


def _client_of_session(home: Home, session: str | None, project: str) -> int | None:
    if session is None:
        return None
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        found = Sessions(ledger).find(session, project)
    return None if found is None or is_over(found) else process_of(found)


def _client_of_agent(home: Home, environ: Mapping[str, str]) -> int | None:
    """Return a pidfd of the client that runs the agent around this process.

    The files of the agent's attempt name this client. The leader of the Unix session is not used: a client runs each
    tool in a new Unix session, so that leader ends with the tool. Returns None outside of an agent.
    """
    inside = parent_of(environ)
    if inside is None:
        return None
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        task = ledger.task(inside)
    if task is None or task.launch.agent is None:
        return None
    try:
        record_fd = open_record(AttemptFiles(home.bundle(task.id), task.current.number).record)
    except OSError:
        return None
    try:
        found = read_identity(record_fd)
    finally:
        os.close(record_fd)
    return None if found is None else open_verified(found[0])

"""Sessions: how a session begins, continues another session, and ends."""

from __future__ import annotations

import os

from outlive.bundle.lease import is_held
from outlive.bundle.trace import trace
from outlive.domain.errors import UserError
from outlive.domain.sessions.session_name import check_name
from outlive.domain.tasks.lifecycle import LIVE
from outlive.domain.value import Value
from outlive.ledger.contract import Selection
from outlive.ledger.notices import Notices
from outlive.ledger.session_edits import SessionEdits
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import changed_at, utc_now
from outlive.service.notices.find_recipients import OwedBy, Recipients
from outlive.service.notices.inbox import running_for
from outlive.service.sessions.liveness import is_judged, is_over, mark_of
from outlive.service.sessions.start_fast import trace_begin
from outlive.service.tasks.cancel import ask_to_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive.bundle.home import Home
    from outlive.domain.sessions.session import Session, SessionStart
    from outlive.domain.tasks.task import Task
    from outlive.service.maintenance.reconcile import Adopter

_RECENT = 50


class StartRequest(Value):
    """A session that begins, and the earlier session that it continues.

    `evidence` says how it is known which session is continued.
    """

    session: Session
    continues: Session | None
    evidence: str | None

    @property
    def is_repeated(self) -> bool:
        """Whether an earlier call has handled the same beginning of the session."""
        return self.continues is None and self.evidence == "same boundary"


class SessionStatus(Value):
    """A session as `session list` shows it."""

    session: Session
    lives: bool | None
    """Whether the session is alive, or None if that cannot be known."""
    running: int
    owed: int


def begin(home: Home, begun: SessionStart, adopter: Adopter | None) -> StartRequest:
    """Record the beginning of a session.

    If the new session replaces a session that is over, the foreground tasks of the old session are ended.
    """
    check_name(begun.id)
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        session, before, evidence = Sessions(ledger).begin(begun, utc_now(), is_over, lambda name: is_held(home, name))
    trace_begin(home, begun, session, before, evidence)
    # The client may not have reported the end of the replaced session, or the process that handled its end may have
    # been killed. So end its foreground tasks here.
    if before is not None and before.seq != session.seq:
        with SqliteLedger(home.ledger, utc_now()) as ledger:
            again = Sessions(ledger).find(before.id, before.project)
        if again is not None and is_over(again):
            _end_foreground(home, again, adopter)
    return StartRequest(session=session, continues=before, evidence=evidence)


def end(home: Home, name: str, project: str, reason: str | None, adopter: Adopter | None) -> tuple[Session, list[Task]]:
    """End a session and its foreground tasks. Other tasks keep running.

    Returns the session and the tasks that were ended. A second call has no further effect.
    """
    check_name(name)
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        session = Sessions(ledger).find(name, project)
    if session is None:
        raise UserError(f"session {name} is not known in {project}", "`outlive session list` shows the known sessions")
    # End the tasks before the session. If this process is killed in between, the session is still open, so another
    # call can end the session and its tasks.
    ended = _end_foreground(home, session, adopter)
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        is_news = Sessions(ledger).end(session.seq, reason, utc_now())
        session = Sessions(ledger).find(name, project) or session
    ended += _end_foreground(home, session, adopter)  # also end tasks that were launched in the meantime
    trace(home, name, "ended", reason=reason, foreground=[task.id for task in ended], again=not is_news)
    return session, ended


def note_edits(home: Home, name: str, project: str, directory: str, paths: Sequence[str]) -> list[str]:
    """Record that a session has edited files itself, and return the files' real paths.

    A client may report edits late, in batches, so a file's change time counts as the time of its edit.
    """
    check_name(name)
    for path in paths:
        if not path or "\0" in path:
            raise UserError(f"{path!r} is no path", "give the paths of the files that were changed")
    found = [os.path.realpath(os.path.join(directory, path)) for path in paths]
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        origin, _ = Sessions(ledger).heard_of(name, project, utc_now())
        SessionEdits(ledger).note(origin, project, [(path, changed_at(path)) for path in found])
    return found


def _end_foreground(home: Home, session: Session, adopter: Adopter | None) -> list[Task]:
    """End the foreground tasks of a session, wait for their end, and return them.

    A foreground task of a background agent that still runs is not ended. It ends with that agent.
    """
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        own = OwedBy(session=session, origins=(session.seq,))
        front = [task for task in running_for(ledger, own) if task.launch.mode == "foreground"]
        mine = [task.id for task in front if not _is_of_living_agent(ledger, task)]
    return ask_to_end(home, mine, "session_ended", adopter)


def _is_of_living_agent(ledger: SqliteLedger, task: Task) -> bool:
    """Return whether a background agent that still runs has launched a task."""
    parent = None if task.launch.parent is None else ledger.task(task.launch.parent)
    if parent is None or parent.launch.agent is None:
        return False
    return parent.launch.mode == "background" and parent.current.settled_at is None


def standings(home: Home, project: str | None, limit: int) -> list[SessionStatus]:
    """Return the sessions of a project, or of all projects, newest first."""
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        sessions = Sessions(ledger)
        found = sessions.newest(limit) if project is None else sessions.of_project(project, limit)
        return [
            SessionStatus(
                session=session,
                lives=not is_over(session) if is_judged(session) else None,
                running=len(ledger.tasks(Selection(origin=session.seq, states=LIVE))),
                owed=sum(Notices(ledger).count([session.seq]).values()),
            )
            for session in found
        ]


def number_of(home: Home, session: str, project: str) -> int | None:
    """Return the number of a session in a project, or None if it is unknown there."""
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        found = Sessions(ledger).find(session, project)
    return None if found is None else found.seq


def lineage_of(home: Home, session: str, project: str) -> str | None:
    """Return the id that a session shares with all sessions that continue it.

    Returns None if the session is unknown.
    """
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        found = Sessions(ledger).find(session, project)
    return None if found is None else found.lineage


def successor(home: Home, session: str, project: str) -> str:
    """Return the name of a session, or of the session that continues it.

    If the session is over and a living session continues it, the name of the living session is returned. A client may
    start a program for one session, such as an MCP server, and the program may later serve another session.
    """
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        found = Sessions(ledger).find(session, project)
        if found is None or not is_over(found):
            return session
        heir = Recipients(ledger).heir_of(found.seq)
        return session if heir is None else Sessions(ledger).get(heir).id


def session_of_process(home: Home, pid: int, project: str) -> str | None:
    """Return the session that a client's process has open, or None."""
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        return _open_in(ledger, mark_of(pid), project)


def is_open(home: Home, session: str, client: str, project: str) -> bool:
    """Return whether a living process of a client has a session open.

    A process may have begun several sessions. Only the last of these sessions is open.
    """
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        found = Sessions(ledger).find(session, project)
        if found is None or found.process is None or found.client not in (None, client) or is_over(found):
            return False
        return _open_in(ledger, found.process, found.project) == session


def _open_in(ledger: SqliteLedger, process: str, project: str) -> str | None:
    """Return the session that a process has open in a project, or None."""
    recent = Sessions(ledger).of_project(project, _RECENT)
    return next((each.id for each in recent if each.process == process and each.ended_at is None), None)

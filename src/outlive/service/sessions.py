"""Sessions: how one begins, continues another, and ends."""

from __future__ import annotations

import os

from outlive.bundle.lease import is_held
from outlive.bundle.trace import trace
from outlive.domain.errors import UserError
from outlive.domain.lifecycle import LIVE
from outlive.domain.notice import OPEN
from outlive.domain.session import told_of
from outlive.domain.session_name import check_name
from outlive.domain.value import Value
from outlive.ledger.contract import Selection
from outlive.ledger.edits import Edits
from outlive.ledger.inbox import Inbox
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.cancel import ask_to_end
from outlive.service.clock import changed_at, utc_now
from outlive.service.inbox import Owed, running_for
from outlive.service.liveness import is_judged, is_over, mark_of, process_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive.bundle.home import Home
    from outlive.domain.session import Begun, Session
    from outlive.domain.task import Task
    from outlive.service.reconcile import Adopter

_RECENT = 50


class Beginning(Value):
    """What became of a beginning: the session, and whom it continues."""

    session: Session
    continues: Session | None
    evidence: str | None

    @property
    def is_repeated(self) -> bool:
        """Whether this boundary had been told of already."""
        return self.continues is None and self.evidence == "same boundary"


class Standing(Value):
    """A session as `session list` shows it."""

    session: Session
    lives: bool | None
    """None if nothing is known by which it could be seen to be over."""
    running: int
    owed: int


def begin(home: Home, begun: Begun, adopter: Adopter | None) -> Beginning:
    """Record a session's beginning, and end what a session that it replaces should have ended."""
    check_name(begun.id)
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        session, before, evidence = Sessions(ledger).begin(begun, utc_now(), is_over, lambda name: is_held(home, name))
    trace(
        home,
        session.id,
        "began",
        source=begun.source,
        lineage=session.lineage,
        continues=before.id if before else None,
        evidence=evidence,
    )
    # Its end may never have been told, or whoever told it may have been killed half-way.
    if before is not None and before.seq != session.seq:
        with SqliteLedger(home.ledger, utc_now()) as ledger:
            again = Sessions(ledger).find(before.id, before.project)
        if again is not None and is_over(again):
            _end_foreground(home, again, adopter)
    return Beginning(session=session, continues=before, evidence=evidence)


def end(home: Home, name: str, project: str, reason: str | None, adopter: Adopter | None) -> tuple[Session, list[Task]]:
    """End a session: its foreground tasks end with it, the others live on. Done twice, it is done once."""
    check_name(name)
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        session = Sessions(ledger).find(name, project)
    if session is None:
        raise UserError(f"session {name} was never heard of in {project}", "`outlive session list` shows those known")
    # First the tasks: killed half-way, we leave a session that has not ended, and can be ended again.
    ended = _end_foreground(home, session, adopter)
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        is_news = Sessions(ledger).end(session.seq, reason, utc_now())
        session = Sessions(ledger).find(name, project) or session
    ended += _end_foreground(home, session, adopter)  # what was launched while we waited for the others
    trace(home, name, "ended", reason=reason, foreground=[task.id for task in ended], again=not is_news)
    return session, ended


def note_edits(home: Home, name: str, project: str, directory: str, paths: Sequence[str]) -> list[str]:
    """Note that a session has changed these files by its own hand; returns them as they are known.

    We may hear of it late: a client tells of several calls when the last of them is done. So the files say when.
    """
    check_name(name)
    for path in paths:
        if not path or "\0" in path:
            raise UserError(f"{path!r} is no path", "name the files that were changed")
    found = [os.path.realpath(os.path.join(directory, path)) for path in paths]
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        origin, _ = Sessions(ledger).heard_of(name, project, utc_now())
        Edits(ledger).note(origin, project, [(path, changed_at(path)) for path in found])
    return found


def _end_foreground(home: Home, session: Session, adopter: Adopter | None) -> list[Task]:
    """Every foreground task of a session, with all it started; returns them as they ended."""
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        own = Owed(session=session, origins=(session.seq,))
        mine = [task for task in running_for(ledger, own) if task.launch.mode == "foreground"]
    return ask_to_end(home, [task.id for task in mine], "session_ended", adopter)


def standings(home: Home, project: str | None, limit: int) -> list[Standing]:
    """The sessions of a project, or of all, newest first: who lives, what each is owed."""
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        sessions = Sessions(ledger)
        found = sessions.newest(limit) if project is None else sessions.of_project(project, limit)
        return [
            Standing(
                session=session,
                lives=not is_over(session) if is_judged(session) else None,
                running=len(ledger.tasks(Selection(origin=session.seq, states=LIVE))),
                owed=len([notice for notice in Inbox(ledger).owed([session.seq]) if notice.state in OPEN]),
            )
            for session in found
        ]


def number_of(home: Home, session: str, project: str) -> int | None:
    """The number of a session as seen from a project; None if it was never heard of there."""
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        found = Sessions(ledger).find(session, project)
    return None if found is None else found.seq


def lineage_of(home: Home, session: str, project: str) -> str | None:
    """The sessions that it continues and that continue it, itself among them; None if it was never heard of."""
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        found = Sessions(ledger).find(session, project)
    return None if found is None else found.lineage


def successor(home: Home, session: str, project: str) -> str:
    """Who speaks for a session now: itself, or, if it is over, the heir that is told in its place.

    A program that a client started with one session's name may serve the sessions that continue it.
    """
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        found = Sessions(ledger).find(session, project)
        if found is None or not is_over(found):
            return session
        lineage = Sessions(ledger).lineage(found.lineage)
    heir = told_of(found.seq, lineage, lambda each: not is_over(each))
    return session if heir is None else lineage.sessions[heir].id


def session_of_process(home: Home, pid: int, project: str) -> str | None:
    """The session that a client's process is in now, for those whom the client tells no name; None if it is in none."""
    process = mark_of(pid)
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        recent = Sessions(ledger).of_project(project, _RECENT)
    return next((each.id for each in recent if each.process == process and each.ended_at is None), None)


def owner_of(home: Home, session: str, project: str) -> int | None:
    """A pidfd of the process of a session, for a task that is to end with it; None if it is not known."""
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        found = Sessions(ledger).find(session, project)
    return None if found is None or is_over(found) else process_of(found)

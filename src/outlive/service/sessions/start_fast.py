"""The usual start of a session, at which there is nothing to report.

The code of hand-offs is not imported, so that the start is fast.
"""

from __future__ import annotations

from outlive.bundle.lease import is_held
from outlive.bundle.trace import trace
from outlive.domain.notices.notice import TOLD_LATELY
from outlive.ledger.notices import Notices
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.ledger.unheard_endings import UnheardEndings
from outlive.service.clock import tick, utc_now
from outlive.service.sessions.liveness import is_over

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.domain.sessions.session import Session, SessionStart


def cross_bare_boundary(home: Home, begun: SessionStart) -> bool:
    """Record the beginning of a session that needs no hand-off.

    Returns False, and records nothing, if the session may have to be told about a task.
    """
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        # Commit without fsync. A power failure could delete the row, but it would also end the session. The session
        # has got no notice, so no notice is lost with the row.
        ledger.be_hasty()
        return _recorded(home, ledger, begun)


def _recorded(home: Home, ledger: SqliteLedger, begun: SessionStart) -> bool:
    with ledger.write():
        if _has_anything(ledger, begun):
            return False
        sessions = Sessions(ledger)
        session, before, evidence = sessions.begin(
            begun.but(tick=tick()), utc_now(), is_over, lambda name: is_held(home, name)
        )
        sessions.has_been_told(session.seq, begun.lease)
    trace_begin(home, begun, session, before, evidence)
    return True


def trace_begin(
    home: Home, begun: SessionStart, session: Session, before: Session | None, evidence: str | None
) -> None:
    """Write to the debugging log which session has begun, and which one it continues."""
    trace(
        home,
        session.id,
        "began",
        source=begun.source,
        lineage=session.lineage,
        continues=before.id if before else None,
        evidence=evidence,
    )


def _has_anything(ledger: SqliteLedger, begun: SessionStart) -> bool:
    """Return whether a new session may have to be told about a task.

    The task is still live, or its end has not been read.
    """
    sessions = Sessions(ledger)
    known = sessions.find(begun.id, begun.project)
    projects = {begun.project, begun.project if known is None else known.project}
    if any(task.launch.project in projects or task.launch.session == begun.id for task in ledger.unsettled()):
        return True
    earlier = UnheardEndings(ledger)
    if any(earlier.origins(project) or sessions.run_their_own(project) for project in projects):
        return True
    kin = () if known is None else sessions.lineage(known.lineage).sessions
    own, since = tuple(kin), utc_now() - TOLD_LATELY
    if kin and begun.source == "compact" and Notices(ledger).told_since(own, own, since, 1):
        return True
    return bool(kin) and bool(
        Notices(ledger).open_states(tuple(kin)) or sessions.descendants(kin) or Notices(ledger).tasks_shown_to(kin)
    )

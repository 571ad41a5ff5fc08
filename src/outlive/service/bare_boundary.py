"""A boundary with nothing to hand over, which most are: recorded, and no more.

Whatever it takes to tell a session something is loaded only for those that have something to be told.
"""

from __future__ import annotations

from outlive.bundle.lease import is_held
from outlive.bundle.trace import trace
from outlive.ledger.inbox import Inbox
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import tick, utc_now
from outlive.service.liveness import is_over

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.domain.session import Begun


def cross_bare_boundary(home: Home, begun: Begun) -> bool:
    """Record the beginning if there is nothing to tell, run or end; False, and nothing is recorded, if there is."""
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        # A machine that loses its power ends the session as well, and nobody was told anything: no disk is waited for.
        ledger.be_hasty()
        return _recorded(home, ledger, begun)


def _recorded(home: Home, ledger: SqliteLedger, begun: Begun) -> bool:
    with ledger.write():
        if _has_anything(ledger, begun):
            return False
        sessions = Sessions(ledger)
        session, before, evidence = sessions.begin(
            begun.but(tick=tick()), utc_now(), is_over, lambda name: is_held(home, name)
        )
        sessions.has_been_told(session.seq, begun.lease)
    trace(
        home,
        session.id,
        "began",
        source=begun.source,
        lineage=session.lineage,
        continues=before.id if before else None,
        evidence=evidence,
    )
    return True


def _has_anything(ledger: SqliteLedger, begun: Begun) -> bool:
    """Whether anything runs, or has ended untold, in its project or for itself, wherever that was launched."""
    sessions = Sessions(ledger)
    known = sessions.find(begun.id, begun.project)
    projects = {begun.project, begun.project if known is None else known.project}
    if any(task.launch.project in projects or task.launch.session == begun.id for task in ledger.unsettled()):
        return True
    inbox = Inbox(ledger)
    if any(inbox.origins_in(project) or sessions.run_their_own(project) for project in projects):
        return True
    kin = () if known is None else sessions.lineage(known.lineage).sessions
    return bool(inbox.owed(tuple(kin)))

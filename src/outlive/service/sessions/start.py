"""The start of a session: recording the start and presenting a hand-off."""

from __future__ import annotations

from outlive.bundle.lease import Lease
from outlive.ledger.notices import Notices
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import tick, utc_now
from outlive.service.maintenance.reconcile import reconcile
from outlive.service.notices.inbox import claim
from outlive.service.notices.tell_unheard import claim_earlier
from outlive.service.sessions.hand_off import hand_off
from outlive.service.sessions.lineage import begin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from outlive.bundle.home import Home
    from outlive.domain.sessions.session import SessionStart
    from outlive.service.maintenance.reconcile import Adopter
    from outlive.service.sessions.hand_off import HandOff
    from outlive.service.sessions.lineage import StartRequest


def cross_boundary(
    home: Home, begun: SessionStart, adopter: Adopter | None, put: Callable[[StartRequest, HandOff | None], None]
) -> None:
    """Record the beginning of a session, and pass its hand-off to `put`.

    The notices of the hand-off count as presented when `put` returns. If an earlier call has handled this beginning
    completely, `put` gets None instead of a hand-off.
    """
    with Lease(home) as lease:
        began = begin(home, begun.but(tick=tick(), lease=lease.name), adopter)
        if began.is_repeated:
            put(began, None)
            return
        reconcile(home, utc_now(), None, adopter)
        with claim(home, begun.id, begun.project, at_boundary=True) as claimed:
            assert claimed.owed is not None  # noqa: S101 - `begin` has recorded the session, so `claim` finds it
            is_agent = _is_inside_agent(home, begun)
            is_new = begun.source != "compact" and not is_agent
            earlier = claim_earlier(home, claimed.owed, lease.name, is_new=is_new)
            handed = hand_off(home, claimed.owed, claimed.tellings, earlier, after_summary=begun.source == "compact")
            put(began, handed)
            shown = () if is_agent else handed.shown
            claimed.presented(handed.told, also=lambda ledger: _record(ledger, began.session.seq, lease.name, shown))


def _is_inside_agent(home: Home, begun: SessionStart) -> bool:
    """Return whether this session is that of a background agent.

    Such a session works only on its prompt. So it does not receive notices in place of a session that is over. If it
    received and confirmed them, no session of the user would receive them.
    """
    if begun.parent is None:
        return False
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        task = ledger.task(begun.parent)
    return task is not None and task.launch.agent is not None


def _record(ledger: SqliteLedger, session: int, lease: str, shown: Sequence[str]) -> None:
    """Record the hand-off, its notices, and the tasks of other sessions that it shows."""
    Sessions(ledger).has_been_told(session, lease)
    Notices(ledger).present_all(lease, session, utc_now())
    Notices(ledger).note_shown(shown, session)

"""Crossing a boundary: a session begins or goes on, and is told what it should know before it acts."""

from __future__ import annotations

from outlive.bundle.lease import Lease
from outlive.ledger.sessions import Sessions
from outlive.service.clock import tick, utc_now
from outlive.service.hand_off import hand_off
from outlive.service.inbox import claim
from outlive.service.reconcile import reconcile
from outlive.service.sessions import begin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from outlive.bundle.home import Home
    from outlive.domain.session import Begun
    from outlive.service.hand_off import HandOff
    from outlive.service.reconcile import Adopter
    from outlive.service.sessions import Beginning


def cross_boundary(
    home: Home, begun: Begun, adopter: Adopter | None, put: Callable[[Beginning, HandOff | None], None]
) -> None:
    """Record the beginning, and `put` the hand-off before the session: what it tells is presented after that.

    There is none if this boundary was told of already, by somebody who was not killed at it.
    """
    with Lease(home) as lease:
        began = begin(home, begun.but(tick=tick(), lease=lease.name), adopter)
        if began.is_repeated:
            put(began, None)
            return
        reconcile(home, utc_now(), None, adopter)
        with claim(home, begun.id, begun.project, at_boundary=True) as claimed:
            assert claimed.owed is not None  # noqa: S101 - it has just begun
            handed = hand_off(home, claimed.owed, claimed.tellings)
            put(began, handed)
            claimed.presented(
                handed.told, also=lambda ledger: Sessions(ledger).has_been_told(began.session.seq, lease.name)
            )

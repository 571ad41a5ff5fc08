"""Which tasks may hold files away from how they found them; what they hold is dear to find out, and is not asked here.

A task that has ended without success is named for what it left away and nobody has put back: for an hour,
and for a day while a session is still to be told of it. What a success has changed was meant to change.
"""

from __future__ import annotations

from outlive.domain.when import timedelta
from outlive.ledger.inbox import Inbox
from outlive.service.clock import utc_now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.domain.task import Task
    from outlive.ledger.sqlite import SqliteLedger

_RECENT, _UNTOLD = timedelta(hours=1), timedelta(days=1)


def may_hold(ledger: SqliteLedger) -> list[Task]:
    """The tasks whose open windows concern others: those that run, and those that ended a short while ago."""
    now = utc_now()
    return [*ledger.unsettled(), *Inbox(ledger).left_behind(now - _RECENT, now - _UNTOLD)]

"""Sweeping: deleting what is due, all of it, because somebody asked for it."""

from __future__ import annotations

import os

from outlive.bundle.attempt import discard_bundle
from outlive.bundle.lease import clear_leases
from outlive.domain.value import Value
from outlive.keeper.tidying import disk_cap, plan_tidying, tidy
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.strays import is_abandoned, strays

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.ledger.retention import Deletable

_AT_ONCE = 500


class Swept(Value):
    """What is due for deletion, or what has been deleted."""

    tasks: tuple[Deletable, ...]
    strays: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many bytes of output that is."""
        return sum(each.size for each in self.tasks)


def preview(home: Home, now: datetime, cap: int | None = None) -> Swept:
    """What a sweep would delete now; changes nothing."""
    with SqliteLedger(home.ledger, now) as ledger:
        chosen = plan_tidying(ledger, now, disk_cap(os.environ) if cap is None else cap, limit=1_000_000)
        abandoned = [task for task in strays(home, ledger) if is_abandoned(home, task, now)]
    return Swept(tasks=tuple(chosen), strays=tuple(abandoned))


def sweep(home: Home, now: datetime, cap: int | None = None) -> Swept:
    """Delete it, some at a time so that nobody waits long for the ledger."""
    planned = preview(home, now, cap)
    gone: set[str] = set()
    for start in range(0, len(planned.tasks), _AT_ONCE):
        with SqliteLedger(home.ledger, now) as ledger:
            gone.update(tidy(home, ledger, planned.tasks[start : start + _AT_ONCE]))
    clear_leases(home)
    for task in planned.strays:
        discard_bundle(home.bundle(task))
    return planned.but(tasks=tuple(each for each in planned.tasks if each.task in gone))

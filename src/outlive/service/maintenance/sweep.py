"""Sweeping: deleting the records of old tasks when the user asks for it.

A task is old when its retention (the time for which its records are kept) has passed.
"""

from __future__ import annotations

import os

from outlive.bundle.attempt import discard_bundle
from outlive.bundle.lease import clear_leases
from outlive.domain.value import Value
from outlive.keeper.cleanup import disk_cap, plan_tidying, tidy
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.maintenance.orphan_bundles import is_abandoned, strays

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.ledger.retention import Deletable

_AT_ONCE = 500


class Swept(Value):
    """The tasks and bundles that are due for deletion, or that have been deleted."""

    tasks: tuple[Deletable, ...]
    strays: tuple[str, ...]

    @property
    def size(self) -> int:
        """The size of the output of all these tasks, in bytes."""
        return sum(each.size for each in self.tasks)


def preview(home: Home, now: datetime, cap: int | None = None) -> Swept:
    """Return what a sweep would delete now, and change nothing."""
    with SqliteLedger(home.ledger, now) as ledger:
        chosen = plan_tidying(ledger, now, disk_cap(os.environ) if cap is None else cap, limit=1_000_000)
        abandoned = [task for task in strays(home, ledger) if is_abandoned(home, task, now)]
    return Swept(tasks=tuple(chosen), strays=tuple(abandoned))


def sweep(home: Home, now: datetime, cap: int | None = None) -> Swept:
    """Delete due tasks and bundles, in batches that lock the ledger only briefly."""
    planned = preview(home, now, cap)
    gone: set[str] = set()
    for start in range(0, len(planned.tasks), _AT_ONCE):
        with SqliteLedger(home.ledger, now) as ledger:
            gone.update(tidy(home, ledger, planned.tasks[start : start + _AT_ONCE]))
    clear_leases(home)
    for task in planned.strays:
        discard_bundle(home.bundle(task))
    return planned.but(tasks=tuple(each for each in planned.tasks if each.task in gone))

"""Deletion of a few tasks that are due, by a keeper that has settled its attempt."""

from __future__ import annotations

import os

from outlive.bundle.attempt import discard_bundle
from outlive.bundle.lease import clear_leases
from outlive.bundle.trace import trace
from outlive.domain.errors import UserError
from outlive.domain.text.units import parse_size
from outlive.domain.timestamps import timedelta
from outlive.ledger.client_tasks import ClientTasks
from outlive.ledger.left_open_paths import LeftOpenPaths
from outlive.ledger.retention import Retention
from outlive.ledger.session_edits import SessionEdits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.ledger.retention import Deletable
    from outlive.ledger.sqlite import SqliteLedger

DEFAULT_DISK_CAP = 8 << 30
_AT_ONCE = 64
_LEAP = timedelta(days=1)
_EDITS_KEPT = timedelta(days=7)
_LEFT_PATHS_KEPT = timedelta(days=1)
# A process that waited for the end of a task may need this time to read the task. So no task is deleted sooner than
# this after its settlement.
_READ_WITHIN = timedelta(minutes=1)


def disk_cap(environ: Mapping[str, str]) -> int:
    """Return how many bytes of output ended tasks may keep in total."""
    try:
        return parse_size(environ["OUTLIVE_MAX_DISK"])
    except (KeyError, UserError):
        return DEFAULT_DISK_CAP


def plan_tidying(
    ledger: SqliteLedger, now: datetime, cap: int, limit: int, settled_by: datetime | None = None
) -> list[Deletable]:
    """Return the ended tasks to delete, at most `limit`.

    These are the tasks whose deletion date has passed. If the output of the remaining tasks exceeds `cap` bytes, the
    oldest tasks are added. Tasks that were settled after the time `settled_by` are left out.
    """
    retention = Retention(ledger)
    settled_by = settled_by or now
    chosen = retention.due(now, settled_by, limit)
    left = retention.kept_bytes() - sum(each.size for each in chosen)
    named = {each.task for each in chosen}
    for each in retention.oldest(settled_by, limit) if left > cap else ():
        if left <= cap or len(chosen) >= limit:
            break
        if each.task not in named:
            chosen.append(each)
            left -= each.size
    return chosen


def tidy(home: Home, ledger: SqliteLedger, chosen: Sequence[Deletable]) -> list[str]:
    """Delete tasks: first their rows, then their files. Return the deleted ids.

    If this process is killed between the two steps, files remain without a row. A row never remains without its files.
    """
    gone = Retention(ledger).delete([each.task for each in chosen])
    sessions = {each.task: each.session for each in chosen}
    for task in gone:
        trace(home, sessions[task], "pruned", task=task)
        try:
            discard_bundle(home.bundle(task))
        except OSError:
            continue  # the files remain without a row in the ledger, and `outlive audit` lists them
    return gone


def tidy_a_little(home: Home, ledger: SqliteLedger, now: datetime) -> None:
    """Delete a few tasks that are due, the locks of dead processes, and old rows.

    Does nothing if the launch before the last launch is more than a day ago. The clock may then have been set forward,
    and tasks would be deleted too early.
    """
    if now - Retention(ledger).last_but_one_launch(now) > _LEAP:
        return
    chosen = plan_tidying(ledger, now, disk_cap(os.environ), _AT_ONCE, settled_by=now - _READ_WITHIN)
    if chosen:
        tidy(home, ledger, chosen)
    SessionEdits(ledger).forget(now - _EDITS_KEPT)
    ClientTasks(ledger).forget(now - _EDITS_KEPT)
    LeftOpenPaths(ledger).forget(now - _LEFT_PATHS_KEPT)
    clear_leases(home)

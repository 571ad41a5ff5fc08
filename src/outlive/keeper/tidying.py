"""Deleting what is due: a little of it by keepers, when they have settled and nobody waits any more."""

from __future__ import annotations

import os

from outlive.bundle.attempt import discard_bundle
from outlive.bundle.lease import clear_leases
from outlive.bundle.trace import trace
from outlive.domain.errors import UserError
from outlive.domain.quantity import parse_size
from outlive.domain.when import timedelta
from outlive.ledger.edits import Edits
from outlive.ledger.retention import Retention

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
# Whoever waited for an ending is about to read it, however short its retention is.
_READ_WITHIN = timedelta(minutes=1)


def disk_cap(environ: Mapping[str, str]) -> int:
    """How much output of ended tasks may lie around in all."""
    try:
        return parse_size(environ["OUTLIVE_MAX_DISK"])
    except (KeyError, UserError):
        return DEFAULT_DISK_CAP


def plan_tidying(
    ledger: SqliteLedger, now: datetime, cap: int, limit: int, settled_by: datetime | None = None
) -> list[Deletable]:
    """What may be deleted now: first what is past its date, then the oldest while there is too much."""
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
    """Delete rows, then bundles: whoever is killed in between leaves files without a row, never the reverse."""
    gone = Retention(ledger).delete([each.task for each in chosen])
    sessions = {each.task: each.session for each in chosen}
    for task in gone:
        trace(home, sessions[task], "pruned", task=task)
        try:
            discard_bundle(home.bundle(task))
        except OSError:
            continue  # files without a row; `outlive audit` names them
    return gone


def tidy_a_little(home: Home, ledger: SqliteLedger, now: datetime) -> None:
    """What a keeper does in passing; nothing if the clock has leapt ahead since the last launch but this."""
    if now - Retention(ledger).last_but_one_launch(now) > _LEAP:
        return
    chosen = plan_tidying(ledger, now, disk_cap(os.environ), _AT_ONCE, settled_by=now - _READ_WITHIN)
    if chosen:
        tidy(home, ledger, chosen)
    Edits(ledger).forget(now - _EDITS_KEPT)
    clear_leases(home)

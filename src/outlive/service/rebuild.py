"""Rebuilding: rows for bundles that have none, from what the bundles themselves say.

The launch is in `spec.json`, the end in the attempt's record. What only the ledger knew is gone:
who had been told of an ending. It is told again.
"""

from __future__ import annotations

import os

from outlive.bundle.attempt import AttemptFiles, keeper_lives
from outlive.bundle.kernel import boot_id, pid_namespace
from outlive.domain.task import Attempt
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.reconcile import reconcile
from outlive.service.strays import read_spec, strays

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.domain.task import Launch


def rebuild(home: Home, now: datetime) -> tuple[list[str], list[str]]:
    """Give every bundle without a row its row back; the ids of those that have it, and of those that cannot."""
    with SqliteLedger(home.ledger, now) as ledger:
        missing = strays(home, ledger)
    launches = {task: read_spec(home, task) for task in missing}
    known = sorted((launch for launch in launches.values() if launch is not None), key=lambda each: each.created_at)
    done = [launch.id for launch in known if _restore(home, launch, now)]
    return done, [task for task in missing if task not in done]


def _restore(home: Home, launch: Launch, now: datetime) -> bool:
    """Row by row as it was; each attempt is settled by its record before the next one is added."""
    try:
        names = os.listdir(home.bundle(launch.id) + "/attempts")
    except OSError:
        return False
    for number in range(1, len(names) + 1):
        attempt = _read_attempt(home, launch, number)
        with SqliteLedger(home.ledger, now) as ledger:
            if number > 1:
                ledger.add_attempt(launch.id, attempt)
            elif ledger.enqueue(launch, attempt).id != launch.id:
                ledger.enqueue(launch.but(key=None), attempt)  # a newer task has its key by now
        reconcile(home, now, launch.id)
    return bool(names)


def _read_attempt(home: Home, launch: Launch, number: int) -> Attempt:
    files = AttemptFiles(home.bundle(launch.id), number)
    process = files.read_slot("process")
    waits = process is None and keeper_lives(files)
    return Attempt(
        number=number,
        state="queued" if waits else "running",
        created_at=launch.created_at,
        started_at=None if waits else launch.created_at,
        boot=process["boot"] if process else boot_id(),
        pid_namespace=int(process["namespace"]) if process else pid_namespace(),
        automatic=waits and number > 1 and launch.retries > 0,
    )

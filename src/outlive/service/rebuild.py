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
    last = _last_attempt(home.bundle(launch.id))
    for number in range(1, last + 1):
        attempt = _read_attempt(home, launch, number)
        with SqliteLedger(home.ledger, now) as ledger:
            if number > 1:
                ledger.add_attempt(launch.id, attempt)
            elif ledger.enqueue(launch, attempt).id != launch.id:
                ledger.enqueue(launch.but(key=None), attempt)  # a newer task has its key by now
        reconcile(home, now, launch.id)
    return last > 0


def _last_attempt(bundle: str) -> int:
    """The number of the last attempt that may have had a row; 0 if there is none.

    A row comes after all files: a directory with the first few of them is what a launcher left that was killed.
    """
    try:
        names = os.listdir(bundle + "/attempts")
    except OSError:
        return 0
    all_files = (AttemptFiles(bundle, int(name)) for name in names if name.isdigit())
    return max((each.number for each in all_files if _was_made(each)), default=0)


def _was_made(files: AttemptFiles) -> bool:
    return os.path.exists(files.record) or os.path.exists(files.output)


def _read_attempt(home: Home, launch: Launch, number: int) -> Attempt:
    files = AttemptFiles(home.bundle(launch.id), number)
    process = files.read_slot("process")
    waits = process is None and _is_kept(files)
    return Attempt(
        number=number,
        state="queued" if waits else "running",
        created_at=launch.created_at,
        started_at=None if waits else launch.created_at,
        boot=process["boot"] if process else boot_id(),
        pid_namespace=int(process["namespace"]) if process else pid_namespace(),
        automatic=waits and number > 1 and launch.retries > 0,
    )


def _is_kept(files: AttemptFiles) -> bool:
    try:
        return keeper_lives(files)
    except OSError:
        return False  # its files were deleted; reconciling tells what is known of it all the same

"""Rebuilding: restoring rows of the ledger from the files of the bundles.

No file records which sessions were notified of a task's end. So after a rebuild, sessions are notified again.
"""

from __future__ import annotations

import os
import time

from outlive.bundle.attempt import AttemptFiles, keeper_lives
from outlive.bundle.home import Home
from outlive.domain.errors import LedgerIncomplete
from outlive.domain.tasks.task import Attempt
from outlive.keeper.spawn import launch_adopter
from outlive.ledger.completeness import Restoring
from outlive.ledger.contract import Selection
from outlive.ledger.sqlite import SqliteLedger
from outlive.linux.syscalls import boot_id, pid_namespace
from outlive.service.clock import utc_now
from outlive.service.maintenance.orphan_bundles import read_spec, strays
from outlive.service.maintenance.reconcile import reconcile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from outlive.domain.tasks.task import Launch, Task
    from outlive.ledger.contract import Ledger
    from outlive.service.maintenance.reconcile import Adopter


def rebuild(
    home: Home, now: datetime, adopter: Adopter | None = launch_adopter, until: float | None = None
) -> tuple[list[str], list[str]]:
    """Restore the row of every bundle that has no row in the ledger.

    Returns the ids of the restored tasks, and the ids of the bundles that cannot be restored. An earlier rebuild may
    have been killed after it restored the first attempt of a task. So missing rows of later attempts are restored too.
    A task that is being launched is left out, because its launcher writes the row. When the monotonic clock passes
    `until`, this function raises `LedgerIncomplete` and keeps the rows that it has restored.
    """
    with Restoring(home.ledger):
        return _rebuild(home, now, adopter, until)


def restore_incomplete(ledger_path: str, until: float | None = None) -> list[str]:
    """Rebuild an incomplete ledger, and return the ids of the restored tasks.

    This function starts no new keeper for a task without a keeper, because the caller may be a program that must not
    fork. The caller calls `reconcile` afterwards.
    """
    home, now = Home(os.path.dirname(ledger_path)), utc_now()
    with Restoring(ledger_path, until):
        with SqliteLedger(ledger_path, now) as ledger:
            if ledger.is_complete():
                return []
        return _rebuild(home, now, None, until)[0]


def restored_sentences(restored: Sequence[str]) -> tuple[str, str]:
    """Return the sentence and the hint to show after a ledger was restored."""
    tasks = "the record of one task" if len(restored) == 1 else f"the records of {len(restored):,} tasks"
    return (
        f"the ledger was moved away, deleted, replaced or damaged: {tasks} had to be restored from the tasks' files",
        "the end of a task may be reported a second time; the receivers of `outlive sink` may have to be added again",
    )


def _rebuild(home: Home, now: datetime, adopter: Adopter | None, until: float | None) -> tuple[list[str], list[str]]:
    """Restore rows until no row is missing, and then declare the ledger complete.

    The ledger may be lost a second time during the rebuild. So the ledger is declared complete through the same
    connection that has found no missing row. Another pass follows only if the pass before has restored a row.
    """
    reconcile(home, now, None, adopter)
    done: dict[str, None] = {}
    has_progress = True
    while True:
        with SqliteLedger(home.ledger, now) as ledger:
            lacking, left = _find_lacking(home, ledger)
            if not lacking or not has_progress:
                if done or not ledger.is_complete():
                    ledger.declare_complete()
                return list(done), left
        has_progress = False
        for each, numbers in lacking:
            if until is not None and time.monotonic() > until:
                raise LedgerIncomplete.at(home.ledger)
            if _restore(home, each, numbers, now, adopter):
                done[each.id] = None
                has_progress = True


def _find_lacking(home: Home, ledger: Ledger) -> tuple[list[tuple[Launch, range]], list[str]]:
    """Return the launches with missing rows, and the ids of the bundles without a row.

    Each launch comes with the numbers of the attempts whose rows are missing. A task that is being launched is left
    out.
    """
    begun = [(task.launch, _begun_attempts(home, task)) for task in ledger.tasks(Selection())]
    launches = {task: read_spec(home, task) for task in strays(home, ledger)}
    left = [task for task, launch in launches.items() if launch is None or not is_under_way(home, launch)]
    known = [launch for task in left if (launch := launches[task]) is not None]
    known.sort(key=lambda each: each.created_at)
    lacking = begun + [(launch, _all_attempts(home, launch)) for launch in known]
    return [(launch, numbers) for launch, numbers in lacking if numbers], left


def could_be_rebuilt(home: Home, task: str) -> bool:
    """Return whether a bundle's row can be restored.

    Returns False while the task is being launched.
    """
    launch = read_spec(home, task)
    return launch is not None and _last_attempt(home.bundle(task)) > 0 and not is_under_way(home, launch)


def is_under_way(home: Home, launch: Launch) -> bool:
    """Return whether a task is being launched and its id has not been printed yet.

    If another process restored the row now and the launch then failed, the ledger would keep a queued task that never
    runs. For a task that waits in the queue, this function returns False. The files of such a task can look like those
    of a launch for hours, and its launcher accepts a row that another process has written.
    """
    files = AttemptFiles(home.bundle(launch.id), 1)
    if launch.is_queued or _last_attempt(files.bundle) != 1:
        return False
    return (files.read_slot("process") or {}).get("started") != "yes" and _is_kept(files)


def _restore(home: Home, launch: Launch, numbers: range, now: datetime, adopter: Adopter | None) -> bool:
    """Add the missing rows of a task, in the order of its attempts.

    Each attempt is settled before the next row is added. Returns False if no row is missing, or if another process has
    added the row first.
    """
    for number in numbers:
        attempt = _read_attempt(home, launch, number)
        with SqliteLedger(home.ledger, now) as ledger, ledger.write():
            if number > 1:
                if not ledger.add_attempt(launch.id, attempt):
                    return False
            elif ledger.task(launch.id) is not None:
                return False
            elif ledger.enqueue(launch, attempt).id != launch.id:
                ledger.enqueue(launch.but(key=None), attempt)  # the key is left out, because a newer task has it
        reconcile(home, now, launch.id, adopter)
    return bool(numbers)


def _all_attempts(home: Home, launch: Launch) -> range:
    return range(1, _last_attempt(home.bundle(launch.id)) + 1)


def _begun_attempts(home: Home, task: Task) -> range:
    """Return the numbers of attempts that have begun and whose rows were lost."""
    last = task.current.number
    while has_begun(AttemptFiles(home.bundle(task.id), last + 1)):
        last += 1
    return range(task.current.number + 1, last + 1)


def has_begun(files: AttemptFiles) -> bool:
    """Return whether an attempt has begun, according to its record."""
    try:
        process, ended = files.read_slot("process"), files.read_slot("exit")
    except OSError:
        return False  # the file has no readable record
    return (process or {}).get("started") == "yes" or (ended is not None and ended.get("what") != "go")


def _last_attempt(bundle: str) -> int:
    """Return the last attempt that may have had a row in the ledger, or 0 if none had."""
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
    is_tried_again = number > 1 and launch.retries > 0
    waits = process is None and (launch.is_queued or is_tried_again) and _is_kept(files)
    return Attempt(
        number=number,
        state="queued" if waits else "running",
        created_at=launch.created_at,
        started_at=None if waits else launch.created_at,
        boot=process["boot"] if process else boot_id(),
        pid_namespace=int(process["namespace"]) if process else pid_namespace(),
        automatic=waits and is_tried_again,
    )


def _is_kept(files: AttemptFiles) -> bool:
    try:
        return keeper_lives(files)
    except OSError:
        return False  # the attempt's files were deleted, so it has no keeper

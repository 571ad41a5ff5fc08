"""Rebuilding: rows for bundles that have none, from what the bundles themselves say.

The launch is in `spec.json`, the end in the attempt's record. What only the ledger knew is gone:
who had been told of an ending. It is told again.
"""

from __future__ import annotations

import os

from outlive.bundle.attempt import AttemptFiles, keeper_lives
from outlive.bundle.kernel import boot_id, pid_namespace
from outlive.domain.task import Attempt
from outlive.ledger.contract import Selection
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.reconcile import reconcile
from outlive.service.strays import read_spec, strays

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.domain.task import Launch, Task


def rebuild(home: Home, now: datetime) -> tuple[list[str], list[str]]:
    """Give every bundle without a row its row back; the ids of those that have it, and of those that cannot.

    What is being launched just now gets its row from its launcher. Whoever was killed at this has left tasks that lack
    their later attempts; those go on.
    """
    reconcile(home, now)
    with SqliteLedger(home.ledger, now) as ledger:
        missing = strays(home, ledger)
        begun = [(task, _begun_attempts(home, task)) for task in ledger.tasks(Selection())]
    launches = {task: read_spec(home, task) for task in missing}
    known = [launch for launch in launches.values() if launch is not None and not is_under_way(home, launch)]
    known.sort(key=lambda each: each.created_at)
    done = [task.id for task, numbers in begun if _restore(home, task.launch, numbers, now)]
    done += [launch.id for launch in known if _restore(home, launch, _all_attempts(home, launch), now)]
    with SqliteLedger(home.ledger, now) as ledger:
        left = [task for task in missing if ledger.task(task) is None]
    return done, [task for task in left if (launch := launches[task]) is None or not is_under_way(home, launch)]


def could_be_rebuilt(home: Home, task: str) -> bool:
    """Whether a bundle tells enough for a row: what was asked for, and an attempt with all that comes before it."""
    launch = read_spec(home, task)
    return launch is not None and _last_attempt(home.bundle(task)) > 0 and not is_under_way(home, launch)


def is_under_way(home: Home, launch: Launch) -> bool:
    """Whether it is being launched just now, and nobody has been told its id.

    On a row that is not its launcher's it might be taken for waiting, or stay behind as a task that nobody launched.
    Who is in line looks like that for hours; a launcher goes on with the row that it finds.
    """
    files = AttemptFiles(home.bundle(launch.id), 1)
    if launch.is_queued or _last_attempt(files.bundle) != 1:
        return False
    return (files.read_slot("process") or {}).get("started") != "yes" and _is_kept(files)


def _restore(home: Home, launch: Launch, numbers: range, now: datetime) -> bool:
    """Row by row as it was; each attempt is settled by its record before the next one is added.

    False if there is none, or somebody else was faster.
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
                ledger.enqueue(launch.but(key=None), attempt)  # a newer task has its key by now
        reconcile(home, now, launch.id)
    return bool(numbers)


def _all_attempts(home: Home, launch: Launch) -> range:
    return range(1, _last_attempt(home.bundle(launch.id)) + 1)


def _begun_attempts(home: Home, task: Task) -> range:
    """The attempts after the last one on record that must have had a row, because they have begun."""
    last = task.current.number
    while has_begun(AttemptFiles(home.bundle(task.id), last + 1)):
        last += 1
    return range(task.current.number + 1, last + 1)


def has_begun(files: AttemptFiles) -> bool:
    """Whether the command of an attempt was let go, which happens after its row was written."""
    try:
        process, ended = files.read_slot("process"), files.read_slot("exit")
    except OSError:
        return False  # something else stands there
    return (process or {}).get("started") == "yes" or (ended is not None and ended.get("what") != "go")


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
        return False  # its files were deleted; reconciling tells what is known of it all the same

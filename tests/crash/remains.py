"""What a task leaves on the disk besides the rows in the ledger: files and locks."""

import os
from pathlib import Path

from outlive.bundle.attempt import AttemptFiles, take
from outlive.bundle.home import Home
from outlive.domain.tasks.task import History, Task
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now

Snapshot = tuple[tuple[Task, History], ...]


def damage_in(home: Home, snapshot: Snapshot) -> list[str]:
    """Return the defects of the ledger, and the lock files that are missing or still locked."""
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        damage = [f"integrity: {line}" for line in ledger.check_integrity()]
    damage += [f"quarantined: {path.name}" for path in Path(home.path).glob("ledger*.broken*")]
    for task, _ in snapshot:
        for attempt in task.attempts:
            files = AttemptFiles(home.bundle(task.id), attempt.number)
            damage += [
                f"{which} of attempt {attempt.number} is {state}"
                for which in ("lock", "control")
                if (state := _state_of(files, which)) != "free"
            ]
    return damage


def bundles_without_row(home: Home, snapshot: Snapshot) -> list[str]:
    """Return the bundles that no row of the ledger names."""
    known = {task.id for task, _ in snapshot}
    return sorted(path.name for path in Path(home.tasks).iterdir() if path.name not in known)


def _state_of(files: AttemptFiles, which: str) -> str:
    try:
        fd = take(files, which)
    except FileNotFoundError:
        return "missing"
    if fd is None:
        return "held"
    os.close(fd)
    return "free"

"""What a life leaves on the disk beside its rows: files, locks, a ledger that is whole."""

import os
from pathlib import Path

from outlive.bundle.attempt import AttemptFiles, take
from outlive.bundle.home import Home
from outlive.domain.task import History, Task
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now

Snapshot = tuple[tuple[Task, History], ...]


def damage_in(home: Home, snapshot: Snapshot) -> list[str]:
    """Look for a broken ledger, and for locks that are gone or that somebody still holds."""
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
    """Find what a launch left behind that no row speaks of."""
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

"""Files without a row: what a launch or a deletion left that was killed half-way."""

from __future__ import annotations

import os

from outlive.bundle.attempt import AttemptFiles, take
from outlive.domain.spec import launch_from_spec
from outlive.domain.text import from_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.domain.task import Launch
    from outlive.ledger.contract import Ledger

# A launch that is still under way has made files and no row yet. It takes milliseconds.
_YOUNG_S = 3600


def strays(home: Home, ledger: Ledger) -> list[str]:
    """Ids of the bundles that no row speaks of, whoever made them."""
    with os.scandir(home.tasks) as entries:
        names = sorted(entry.name for entry in entries if entry.name.isalnum() and entry.is_dir(follow_symlinks=False))
    return [name for name in names if ledger.task(name) is None]


def is_abandoned(home: Home, task: str, now: datetime) -> bool:
    """Whether nobody will ever need it: old, and nobody holds any of its locks.

    What could be rebuilt is kept as long as a record would have been: the ledger may be what is missing.
    """
    bundle = home.bundle(task)
    launch = read_spec(home, task)
    needed_s = _YOUNG_S if launch is None else max(_YOUNG_S, launch.retain.total_seconds())
    try:
        if now.timestamp() - os.stat(bundle).st_mtime < needed_s:
            return False
        # A launcher that was killed at once has made nothing but the directory.
        names = os.listdir(bundle + "/attempts") if "attempts" in os.listdir(bundle) else ()
    except OSError:
        return False
    numbers = [int(name) for name in names if name.isdigit()]
    return not any(_is_held(AttemptFiles(bundle, number)) for number in numbers)


def read_spec(home: Home, task: str) -> Launch | None:
    """What was asked for, as the bundle has it; None if that is missing or cannot be read."""
    try:
        with open(home.bundle(task) + "/spec.json", encoding="utf-8") as file:
            spec = from_json(file.read())
        launch = launch_from_spec(spec if isinstance(spec, dict) else {})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return launch if launch.id == task else None


def _is_held(files: AttemptFiles) -> bool:
    try:
        lock = take(files)
    except OSError:
        return False  # it was not even made
    if lock is None:
        return True
    os.close(lock)
    return False

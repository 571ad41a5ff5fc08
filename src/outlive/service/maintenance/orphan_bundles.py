"""Bundles without a row in the ledger.

A launch or a deletion that was killed leaves such a bundle.
"""

from __future__ import annotations

import os

from outlive.bundle.attempt import AttemptFiles, take
from outlive.domain.tasks.spec import launch_from_spec
from outlive.domain.text.sanitize import from_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Launch
    from outlive.ledger.contract import Ledger

# A launch creates the bundle milliseconds before the row. A bundle younger than this may belong to a launch that is
# under way.
_YOUNG_S = 3600


def strays(home: Home, ledger: Ledger) -> list[str]:
    """Return the ids of the bundles that have no row in the ledger."""
    with os.scandir(home.tasks) as entries:
        names = sorted(entry.name for entry in entries if entry.name.isalnum() and entry.is_dir(follow_symlinks=False))
    return [name for name in names if ledger.task(name) is None]


def is_abandoned(home: Home, task: str, now: datetime) -> bool:
    """Return whether a bundle is old and no process has locked any of its attempts.

    Retention is how long the records of an ended task are kept. A bundle with a readable file `spec.json` counts as
    old only after the task's retention. Until then, a lost ledger can be restored from the bundle.
    """
    bundle = home.bundle(task)
    launch = read_spec(home, task)
    needed_s = _YOUNG_S if launch is None else max(_YOUNG_S, launch.retain.total_seconds())
    try:
        if now.timestamp() - os.stat(bundle).st_mtime < needed_s:
            return False
        # If the launcher was killed early, the bundle is an empty directory.
        names = os.listdir(bundle + "/attempts") if "attempts" in os.listdir(bundle) else ()
    except OSError:
        return False
    numbers = [int(name) for name in names if name.isdigit()]
    return not any(_is_held(AttemptFiles(bundle, number)) for number in numbers)


def read_spec(home: Home, task: str) -> Launch | None:
    """Return the launch that the file `spec.json` in a bundle describes.

    Returns None if the file is missing or unreadable.
    """
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
        return False  # the launcher was killed before it created the lock
    if lock is None:
        return True
    os.close(lock)
    return False

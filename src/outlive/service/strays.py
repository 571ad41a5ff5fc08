"""Files without a row: what a launch or a deletion left that was killed half-way."""

from __future__ import annotations

import os

from outlive.bundle.attempt import AttemptFiles, take

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.ledger.contract import Ledger

# A launch that is still under way has made files and no row yet. It takes milliseconds.
_YOUNG_S = 3600


def strays(home: Home, ledger: Ledger) -> list[str]:
    """Ids of the bundles that no row speaks of, whoever made them."""
    names = sorted(name for name in os.listdir(home.tasks) if name.isalnum())
    return [name for name in names if ledger.task(name) is None]


def is_abandoned(home: Home, task: str, now: datetime) -> bool:
    """Whether nobody will ever need it: old, and nobody holds any of its locks."""
    bundle = home.bundle(task)
    try:
        if now.timestamp() - os.stat(bundle).st_mtime < _YOUNG_S:
            return False
        numbers = [int(name) for name in os.listdir(bundle + "/attempts") if name.isdigit()]
    except OSError:
        return False
    return not any(_is_held(AttemptFiles(bundle, number)) for number in numbers)


def _is_held(files: AttemptFiles) -> bool:
    try:
        lock = take(files)
    except OSError:
        return False  # it was not even made
    if lock is None:
        return True
    os.close(lock)
    return False

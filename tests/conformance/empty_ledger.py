"""An empty ledger, which a test copies because creating one takes longer."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache

from outlive.bundle.home import Home
from outlive.ledger.sqlite import SqliteLedger
from tests.unit.values import NOW

# Use memory where possible. The test makes hundreds of ledgers, and each step would wait for the disk.
FAST_PLACE = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - mkdtemp makes the names in it


@cache
def empty_ledger() -> str:
    """Return a directory with an empty ledger.

    Copying the ledger is faster than creating one.
    """
    path = tempfile.mkdtemp(dir=FAST_PLACE)
    atexit.register(shutil.rmtree, path)
    SqliteLedger(Home(path).ledger, NOW).close()
    return path

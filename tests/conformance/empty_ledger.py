"""An empty ledger for tests to copy. A copy is made faster than a new ledger."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache

from outlive.bundle.home import Home
from outlive.ledger.sqlite import SqliteLedger
from tests.unit.values import NOW

# Use a directory in memory where possible. A test makes hundreds of ledgers, and would wait for the disk at each write.
FAST_PLACE = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - mkdtemp makes the names in it


@cache
def empty_ledger() -> str:
    """Return a directory with an empty ledger. A copy of the ledger is made faster than a new one."""
    path = tempfile.mkdtemp(dir=FAST_PLACE)
    atexit.register(shutil.rmtree, path)
    SqliteLedger(Home(path).ledger, NOW).close()
    return path

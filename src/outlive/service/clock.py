"""The clocks of Outlive.

The domain and the ledger read no clock. They get the time as the parameter `now`.
"""

from __future__ import annotations

import os
import time

from outlive.domain.timestamps import UTC, datetime, from_micros
from outlive.linux.syscalls import boot_id


def utc_now() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(UTC)


def tick() -> str:
    """Return the time since boot in microseconds, together with the id of the boot."""
    return f"{boot_id()} {time.monotonic_ns() // 1000}"


def changed_at(path: str) -> datetime:
    """Return a path's change time (ctime).

    Returns the present time if the path is missing, or if its change time is in the future.
    """
    now = utc_now()
    try:
        return min(now, from_micros(os.stat(path).st_ctime_ns // 1000))
    except (OSError, ValueError):
        return now

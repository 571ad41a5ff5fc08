"""The one place where clocks are read; everything below takes `now`, or a tick."""

from __future__ import annotations

import os
import time

from outlive.bundle.kernel import boot_id
from outlive.domain.when import UTC, datetime, from_micros


def utc_now() -> datetime:
    """This moment, with its zone."""
    return datetime.now(UTC)


def tick() -> str:
    """This moment of this boot, on the clock that nobody sets: a boot and its monotonic microseconds."""
    return f"{boot_id()} {time.monotonic_ns() // 1000}"


def changed_at(path: str) -> datetime:
    """When a path was changed last; now, if it is gone, or its file system is ahead of us."""
    now = utc_now()
    try:
        return min(now, from_micros(os.stat(path).st_ctime_ns // 1000))
    except (OSError, ValueError):
        return now

"""The one place where clocks are read; everything below takes `now`, or a tick."""

from __future__ import annotations

import time

from outlive.bundle.kernel import boot_id
from outlive.domain.when import UTC, datetime


def utc_now() -> datetime:
    """This moment, with its zone."""
    return datetime.now(UTC)


def tick() -> str:
    """This moment of this boot, on the clock that nobody sets: a boot and its monotonic microseconds."""
    return f"{boot_id()} {time.monotonic_ns() // 1000}"

"""The one place where the wall clock is read; everything below takes `now`."""

from __future__ import annotations

from outlive.domain.when import UTC, datetime


def utc_now() -> datetime:
    """This moment, with its zone."""
    return datetime.now(UTC)

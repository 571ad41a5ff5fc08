"""Ticks: times on the monotonic clock, each with the id of its boot."""

from __future__ import annotations


def seconds_since(earlier: str | None, now: str) -> float | None:
    """Return the seconds since the tick `earlier`; None if it is not of this boot."""
    if earlier is None:
        return None
    boot, _, then = earlier.partition(" ")
    current, _, us = now.partition(" ")
    return (int(us) - int(then)) / 1e6 if boot == current else None

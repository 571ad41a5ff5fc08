"""Ticks: times of the monotonic clock, each with the id of the machine's boot."""

from __future__ import annotations


def seconds_since(earlier: str | None, now: str) -> float | None:
    """Return the seconds from the tick `earlier` to the tick `now`.

    Returns None if `earlier` is None, or if the two ticks belong to different boots.
    """
    if earlier is None:
        return None
    boot, _, then = earlier.partition(" ")
    current, _, us = now.partition(" ")
    return (int(us) - int(then)) / 1e6 if boot == current else None

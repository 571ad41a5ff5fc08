"""Ticks: moments of one boot on its monotonic clock, so that no change of a clock stretches a span."""

from __future__ import annotations


def seconds_since(earlier: str | None, now: str) -> float | None:
    """How long ago that was; None if it never was, or in another boot, where nobody can tell."""
    if earlier is None:
        return None
    boot, _, then = earlier.partition(" ")
    current, _, us = now.partition(" ")
    return (int(us) - int(then)) / 1e6 if boot == current else None

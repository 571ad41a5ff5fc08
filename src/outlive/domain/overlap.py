"""Overlap: what two tasks changed in the same span of time."""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from outlive.domain.effects import Effects
    from outlive.domain.task import Attempt


class Overlap(Value):
    """Another task that changed the same paths while this one ran."""

    task: str
    paths: tuple[str, ...]
    since: datetime
    until: datetime | None
    """When they no longer ran both; None if they still do."""


def shared_span(one: Attempt, other: Attempt) -> tuple[datetime, datetime | None] | None:
    """From when to when two attempts ran at the same time; None if they did not."""
    if one.started_at is None or other.started_at is None:
        return None
    since = max(one.started_at, other.started_at)
    ends = [end for end in (_end(one), _end(other)) if end is not None]
    until = min(ends, default=None)
    return None if until is not None and until <= since else (since, until)


def _end(attempt: Attempt) -> datetime | None:
    return attempt.ended_at or attempt.settled_at


def changed_paths(effects: Effects) -> frozenset[str]:
    """Every path that was not always as the task found it."""
    windows = (path for window in effects.windows for path in window.paths)
    return frozenset((*effects.changed, *effects.created, *effects.restored, *windows))


def in_both(one: Iterable[str], other: Iterable[str]) -> tuple[str, ...]:
    """What is in both, in order."""
    return tuple(sorted(frozenset(one) & frozenset(other)))

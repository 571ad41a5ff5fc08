"""Overlap: what a task and somebody else changed in the same span of time."""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from outlive.domain.effects import Effects, Window
    from outlive.domain.task import Attempt, Task

    Span = tuple[datetime, datetime | None]


class Edit(Value):
    """A file that a session changed itself."""

    session: str
    path: str
    at: datetime


class Overlap(Value):
    """Somebody else who changed the same paths while a task ran: another task, or a session by its own hand."""

    task: str | None
    session: str | None = None
    """Whose own edits they were; None if it was a task."""
    paths: tuple[str, ...]
    """Empty if both wrote in one tree, and not the same files so far."""
    since: datetime
    until: datetime | None
    """When they no longer ran both, or the last edit; None if they still run."""


def shared_span(one: Task, other: Task) -> Span | None:
    """From when to when two tasks ran at the same time, from the first try to the newest; None if they did not."""
    starts = [start for task in (one, other) if (start := task.first_try(task.current.number).started_at) is not None]
    if len(starts) < 2:
        return None
    since = max(starts)
    ends = [end for end in (_end(one.current), _end(other.current)) if end is not None]
    until = min(ends, default=None)
    return None if until is not None and until <= since else (since, until)


def _end(attempt: Attempt) -> datetime | None:
    return attempt.ended_at or attempt.settled_at


def shared_tree(one: str, other: str) -> str | None:
    """The tree that two projects have in common: the inner one, if one lies in the other; None if they have none."""
    outer, inner = sorted((one.rstrip("/") + "/", other.rstrip("/") + "/"), key=len)
    return inner if inner.startswith(outer) else None


def lie_in(tree: str, paths: Iterable[str]) -> bool:
    """Whether any of the paths lies in a tree."""
    return any(path.startswith(tree) for path in paths)


def changed_paths(effects: Effects, span: Span | None = None) -> frozenset[str]:
    """Every path that was not always as the task found it; none if nobody knows who changed them.

    With a `span` of time only those that were changed in it, or before and not back by then.
    """
    if not effects.is_attributed:
        return frozenset()
    found = {*effects.changed, *effects.created, *effects.restored}
    away: dict[str, list[Window]] = {}
    for window in effects.windows:
        for path in window.paths:
            away.setdefault(path, []).append(window)
    return frozenset((*found, *away)) - {path for path, windows in away.items() if span and not _meet(windows, span)}


def _meet(windows: Sequence[Window], span: Span) -> bool:
    """Whether a path was changed in a span: from its first window to its last, for of very many not all are known."""
    since, until = span
    ends = [window.closed_at for window in windows if window.closed_at is not None]
    is_over = len(ends) == len(windows) and max(ends) < since
    return not is_over and (until is None or min(window.opened_at for window in windows) <= until)


def in_both(one: Iterable[str], other: Iterable[str]) -> tuple[str, ...]:
    """What is in both, in order."""
    return tuple(sorted(frozenset(one) & frozenset(other)))


def by_hand(mine: frozenset[str], edits: Iterable[Edit]) -> list[Overlap]:
    """What sessions edited of the paths that a task changed, one for each session."""
    found: dict[str, list[Edit]] = {}
    for edit in edits:
        if edit.path in mine:
            found.setdefault(edit.session, []).append(edit)
    return [
        Overlap(
            task=None,
            session=session,
            paths=in_both(mine, (edit.path for edit in theirs)),
            since=min(edit.at for edit in theirs),
            until=max(edit.at for edit in theirs),
        )
        for session, theirs in found.items()
    ]

"""Overlaps: what other tasks, sessions and clients did while a task ran."""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from outlive.domain.effects.effects import Effects, Window
    from outlive.domain.effects.predicted import Declared
    from outlive.domain.sessions.client_task import ClientTask
    from outlive.domain.tasks.task import Attempt, Task

    Span = tuple[datetime, datetime | None]


class Edit(Value):
    """An edit of a file that a session made itself, without a task."""

    session: str
    path: str
    at: datetime


class Overlap(Value):
    """What another task, session or client did in a task's project while the task ran."""

    task: str | None
    session: str | None = None
    """The session that edited files, or whose client ran a command.

    None if this is about another task.
    """
    paths: tuple[str, ...]
    """Paths that were changed by the task, and by the other task or session.

    Empty if the two tasks wrote to the same project, but not to the same files up to now.
    """
    since: datetime
    until: datetime | None
    """The time until which both were active.

    This is when the first of two tasks ended, or when the last edit was made. None if the two tasks still run, or if
    the end of a client's command is not known.
    """
    foreign: ClientTask | None = None
    """The background command that a client ran itself, without Outlive. It is not known what the command wrote."""
    windows: tuple[Window, ...] = ()
    """Changes that the other task had made and not yet restored while this task ran.

    This task may have read the changed files.
    """
    taking: Declared | None = None
    """Changes that the text of the other task's command shows.

    Set only if the system calls of the other task are not observed. It is not known whether the other task made these
    changes while this task ran.
    """

    @property
    def is_inside(self) -> bool:
        """Whether this task ran, or may have run, while the other task had files changed."""
        return bool(self.windows) or self.taking is not None


def shared_span(one: Task, other: Task) -> Span | None:
    """Return the span in which two tasks ran at the same time.

    An automatic retry belongs to the same run as the attempt before it. Returns None if the two tasks did not run at
    the same time.
    """
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
    """Return the inner one of two projects, or None if neither contains the other."""
    outer, inner = sorted((one.rstrip("/") + "/", other.rstrip("/") + "/"), key=len)
    return inner if inner.startswith(outer) else None


def lie_in(tree: str, paths: Iterable[str]) -> bool:
    """Return whether any of the paths lies in the directory `tree`."""
    return any(path.startswith(tree) for path in paths)


def changed_paths(effects: Effects, span: Span | None = None) -> frozenset[str]:
    """Return every path that a task changed, even if the task restored the path.

    With a `span` of time, the function returns only the paths that were changed during the span. The result is empty
    if it is not known which changes the task itself made.
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
    """Return whether a path was changed at some time during a span.

    The times between the first and the last change of the path all count, because some changes in between may not be
    recorded.
    """
    since, until = span
    ends = [window.closed_at for window in windows if window.closed_at is not None]
    is_over = len(ends) == len(windows) and max(ends) < since
    return not is_over and (until is None or min(window.opened_at for window in windows) <= until)


def windows_meanwhile(task: Task, other: Task, effects: Effects) -> tuple[Window, ...]:
    """Return changes that the task `other` had not yet restored while `task` ran.

    `effects` are the effects of `other`. If `other` has succeeded, the changes that remain are left out, because they
    are its result.
    """
    span = shared_span(task, other)
    tree = task.launch.project.rstrip("/") + "/"
    if span is None or not effects.is_attributed:
        return ()
    since, until = span
    return tuple(
        window
        for window in effects.windows
        if window.opened_at <= (until or window.opened_at)
        and (window.closed_at is None or window.closed_at > since)
        and not (window.is_left and other.state == "succeeded")
        # The HEAD file of a worktree may lie in the git directory of another worktree. So the worktree of the changed
        # files (`scope`) is also compared with the project. A submodule has its own scope.
        and (lie_in(tree, window.paths) or window.scope.rstrip("/") + "/" == tree)
    )


def restored_since(effects: Effects, ended_at: datetime) -> Iterator[tuple[str, datetime]]:
    """Yield each path that a task changed and restored after `ended_at`.

    With each path comes the time at which it was restored.
    """
    if effects.is_attributed:
        for window in effects.windows:
            if window.closed_at is not None and window.opened_at >= ended_at:
                yield from ((path, window.closed_at) for path in window.paths)


def in_both(one: Iterable[str], other: Iterable[str]) -> tuple[str, ...]:
    """Return the sorted paths that both collections contain."""
    return tuple(sorted(frozenset(one) & frozenset(other)))


def by_hand(mine: frozenset[str], edits: Iterable[Edit]) -> list[Overlap]:
    """Return the edits that sessions made to a task's paths, without a task.

    The result has one object for each session.
    """
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

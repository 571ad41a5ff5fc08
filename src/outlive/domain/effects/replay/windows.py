"""Windows: spans in which several paths of a worktree were changed together.

The spans of single paths are joined to a window if they belong to the same worktree and overlap in time.
"""

from __future__ import annotations

from outlive.domain.effects.effects import Window
from outlive.domain.effects.path_summary import told_as
from outlive.domain.effects.replay.path_history import ABSENT
from outlive.domain.timestamps import from_micros

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from outlive.domain.effects.replay.path_history import PathHistory, Span

    _CommandOf = Callable[[int], str]


def spans_of(histories: Sequence[tuple[str, PathHistory]]) -> Iterator[tuple[str, Span]]:
    """Yield the spans in which each path differed from its first state.

    A directory may be removed and created again while a path in it stays changed. The span of such a directory is left
    out, because the directory's content is not restored. The span of a moved directory is kept, because no system
    calls have named the paths in it.
    """
    since: dict[str, int] = {}
    for path, history in histories:
        above = path.rpartition("/")[0]
        while history.opened_at is not None and above and history.opened_at < since.get(above, history.opened_at + 1):
            since[above] = history.opened_at
            above = above.rpartition("/")[0]
    for path, history in histories:
        for span in history.windows:
            if span[1] is None or history.must_be_same or span[0] < since.get(path, span[0] + 1):
                yield path, span


def moved_whole(histories: Mapping[str, PathHistory], is_removed: Callable[[str], bool]) -> frozenset[str]:
    """Return the old and new names of directories that moved with their content.

    A directory that was removed, or that the task made, is left out, because the changes of all paths in it were
    observed.
    """
    there = (
        (path, history)
        for path, history in histories.items()
        if history.baseline[:1] == "d" and history.state == ABSENT
    )
    left = {history.baseline: path for path, history in there if not is_removed(history.baseline)}
    came = (path for path, history in histories.items() if history.baseline == ABSENT and history.state in left)
    return frozenset((*left.values(), *came)) if left else frozenset()


def by_whole(spans: Iterable[tuple[str, Span]], whole: frozenset[str]) -> Iterator[tuple[str, Span]]:
    """Yield the spans, with a moved directory in place of the paths in it.

    This is done only for paths that are still changed. All other spans keep their path.
    """
    for path, span in spans:
        yield (told_as(path, whole) if whole and span[1] is None else path), span


def windows_of(
    spans: Iterable[tuple[str, Span]], tops: tuple[str, ...], heads: Mapping[str, str], command_of: _CommandOf
) -> tuple[Window, ...]:
    """Return the changed files of each worktree, in groups sorted by time.

    Each group is a window: a span in which paths were changed and not yet restored.
    """
    by_top: dict[str, list[tuple[str, Span]]] = {}
    for path, span in spans:
        by_top.setdefault(tree_around(path, tops, heads), []).append((path, span))
    found = [window for top, inside in by_top.items() for window in _windows_in(top, inside, command_of)]
    return tuple(sorted(found, key=lambda window: window.opened_at))


def tree_around(path: str, tops: tuple[str, ...], heads: Mapping[str, str]) -> str:
    """Return the worktree to which a path, a HEAD file or a stash file belongs.

    The result has a final slash. If one worktree contains another, the inner one is returned.
    """
    around = [top for top in tops if path.startswith(top)] or [top for top in tops if top.startswith(path + "/")]
    return heads.get(path, max(around, key=len, default="/")).rstrip("/") + "/"


def _windows_in(top: str, found: list[tuple[str, Span]], command_of: _CommandOf) -> Iterable[Window]:
    """Yield the windows of one worktree: spans in which paths were changed.

    Ended spans that overlap in time are joined to one window. All spans that have not ended are joined to one window.
    """
    group: list[tuple[int, str, int]] = []
    still: list[tuple[int, str, int]] = []
    until = 0
    for path, (opened, closed, by) in sorted(found, key=lambda each: each[1][0]):
        if closed is None:
            still.append((opened, path, by))
            continue
        if group and opened > until:
            yield _window(top, group, until, command_of)
            group = []
        group.append((opened, path, by))
        until = max(until, closed)
    if group:
        yield _window(top, group, until, command_of)
    if still:
        yield _window(top, still, None, command_of)


def _window(top: str, spans: list[tuple[int, str, int]], until: int | None, command_of: _CommandOf) -> Window:
    return Window(
        scope=top.rstrip("/") or "/",
        paths=tuple(sorted({path for _, path, _ in spans})),
        opened_at=from_micros(spans[0][0]),
        closed_at=None if until is None else from_micros(until),
        by=command_of(spans[0][2]),
    )

"""Windows: the spans in which single paths were not as they were found, put together by tree and time."""

from __future__ import annotations

from outlive.domain.effects import Window
from outlive.domain.folding import told_as
from outlive.domain.story import ABSENT
from outlive.domain.when import from_micros

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from outlive.domain.story import Span, Story

    _CommandOf = Callable[[int], str]


def spans_of(stories: Sequence[tuple[str, Story]]) -> Iterator[tuple[str, Span]]:
    """The spans of single paths.

    That a directory was gone as well goes without saying where something in it already was, and still is not back:
    made again it is only the place, and what is in it tells whether it is as before. One that was moved took along
    what nobody has named.
    """
    since: dict[str, int] = {}
    for path, story in stories:
        above = path.rpartition("/")[0]
        while story.opened_at is not None and above and story.opened_at < since.get(above, story.opened_at + 1):
            since[above] = story.opened_at
            above = above.rpartition("/")[0]
    for path, story in stories:
        for span in story.windows:
            if span[1] is None or story.must_be_same or span[0] < since.get(path, span[0] + 1):
                yield path, span


def moved_whole(stories: Mapping[str, Story], is_removed: Callable[[str], bool]) -> frozenset[str]:
    """Directories that were there at first and have another name: under both they stand for all that is in them.

    One that was removed, or that the task made, does not: all that was in it has been named.
    """
    there = ((path, story) for path, story in stories.items() if story.baseline[:1] == "d" and story.state == ABSENT)
    left = {story.baseline: path for path, story in there if not is_removed(story.baseline)}
    came = (path for path, story in stories.items() if story.baseline == ABSENT and story.state in left)
    return frozenset((*left.values(), *came)) if left else frozenset()


def by_whole(spans: Iterable[tuple[str, Span]], whole: frozenset[str]) -> Iterator[tuple[str, Span]]:
    """Those that are open by the names of the directories that left with all that was in them."""
    for path, span in spans:
        yield (told_as(path, whole) if whole and span[1] is None else path), span


def windows_of(
    spans: Iterable[tuple[str, Span]], tops: tuple[str, ...], heads: Mapping[str, str], command_of: _CommandOf
) -> tuple[Window, ...]:
    """Of each tree those of its own; a repository inside another one is a tree of its own, and its HEAD is of that."""
    by_top: dict[str, list[tuple[str, Span]]] = {}
    for path, span in spans:
        around = [top for top in tops if path.startswith(top)] or [top for top in tops if top.startswith(path + "/")]
        by_top.setdefault(heads.get(path, max(around, key=len, default="/")).rstrip("/") + "/", []).append((path, span))
    found = [window for top, inside in by_top.items() for window in _windows_in(top, inside, command_of)]
    return tuple(sorted(found, key=lambda window: window.opened_at))


def _windows_in(top: str, found: list[tuple[str, Span]], command_of: _CommandOf) -> Iterable[Window]:
    """Those of single paths that overlap are one: a tree that was not as it should be; so are those still open."""
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

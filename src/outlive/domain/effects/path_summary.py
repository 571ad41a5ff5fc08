"""Summaries of many paths as directories with counts.

If a task made 20,000 files, a reader needs to know where these files are. A summary begins with one directory around
all paths. A directory is replaced by its entries as long as the summary stays short enough. The directory with the
fewest entries is replaced first. So a summary can name three source files next to the directory `node_modules`.
"""

from __future__ import annotations

from _heapq import heappop, heappush

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence


class Summary(Value):
    """One path, or a directory (with a final slash) and the number of paths below it."""

    path: str
    count: int = 1


def fold(paths: Sequence[str], most: int) -> list[Summary]:
    """Return a summary of the paths with at most `most` entries, sorted by path.

    Each path is counted in exactly one entry.
    """
    if len(paths) <= most:
        return [Summary(path=path) for path in sorted(paths)]
    whole = _below(sorted(paths))
    found = {whole.path: whole}
    waiting: list[tuple[int, str, list[list[str]]]] = []
    _wait(waiting, whole.path, sorted(paths))
    while waiting and len(found) - 1 + waiting[0][0] <= most:
        _, directory, parts = heappop(waiting)
        del found[directory]
        for part in parts:
            entry = Summary(path=part[0]) if len(part) == 1 else _below(part)
            found[entry.path] = entry
            if entry.count > 1:
                _wait(waiting, entry.path, part)
    return [found[path] for path in sorted(found)]


def without_filled(paths: Iterable[str], whole: Collection[str] = ()) -> tuple[str, ...]:
    """Return the paths, except directories that contain another of the paths.

    A directory in `whole` stands for the paths in it. It is kept, and the paths in it are left out.
    """
    found = tuple(path for path in paths if not whole or told_as(path, whole) == path)
    filled = {above for path in found if (above := path.rpartition("/")[0]) not in whole}
    return tuple(path for path in found if path not in filled)


def told_as(path: str, whole: Collection[str]) -> str:
    """Return the path under which a path is reported.

    A directory in `whole` stands for all paths in it. If such directories contain the path, the result is the
    outermost of them. Otherwise the result is the path itself.
    """
    found = above = path
    while above := above.rpartition("/")[0]:
        if above in whole:
            found = above
    return found


def largest(folds: Sequence[Summary]) -> Summary | None:
    """Return the directory with the most paths, or None if the list has no directory."""
    return max((entry for entry in folds if entry.count > 1), key=lambda entry: entry.count, default=None)


def _below(paths: list[str]) -> Summary:
    """Return the innermost directory that contains all of the sorted paths."""
    first, last = paths[0].split("/"), paths[-1].split("/")
    shared = 0
    while shared < len(first) - 1 and shared < len(last) - 1 and first[shared] == last[shared]:
        shared += 1
    return Summary(path="/".join(first[:shared]) + "/", count=len(paths))


def _wait(waiting: list[tuple[int, str, list[list[str]]]], directory: str, paths: list[str]) -> None:
    """Add a directory to the queue of directories to be replaced by their entries.

    The paths are stored in groups, one group for each entry of the directory.
    """
    parts: dict[str, list[str]] = {}
    for path in paths:
        name, slash, _ = path[len(directory) :].partition("/")
        parts.setdefault(name + slash, []).append(path)
    heappush(waiting, (len(parts), directory, list(parts.values())))

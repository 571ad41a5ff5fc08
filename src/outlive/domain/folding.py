"""Folding: very many paths, told as directories and counts.

Whoever reads that a task made 20,000 files wants to know where, and not the first forty of them. A
few paths stay as they are; of many, directories stand for what is below them, opened as far as there
is room, those with the fewest entries first: so the three sources are named beside `node_modules`.
"""

from __future__ import annotations

from _heapq import heappop, heappush

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence


class Fold(Value):
    """One path; or a directory, which ends with a slash, and how many paths are meant below it."""

    path: str
    count: int = 1


def fold(paths: Sequence[str], most: int) -> list[Fold]:
    """The paths in at most `most` entries, in order; each path is in exactly one of them."""
    if len(paths) <= most:
        return [Fold(path=path) for path in sorted(paths)]
    whole = _below(sorted(paths))
    found = {whole.path: whole}
    waiting: list[tuple[int, str, list[list[str]]]] = []
    _wait(waiting, whole.path, sorted(paths))
    while waiting and len(found) - 1 + waiting[0][0] <= most:
        _, directory, parts = heappop(waiting)
        del found[directory]
        for part in parts:
            entry = Fold(path=part[0]) if len(part) == 1 else _below(part)
            found[entry.path] = entry
            if entry.count > 1:
                _wait(waiting, entry.path, part)
    return [found[path] for path in sorted(found)]


def without_filled(paths: Iterable[str], whole: Collection[str] = ()) -> tuple[str, ...]:
    """Without directories that others of the paths are in: those tell of them.

    But a `whole` one tells of all that is in it, for most of that nobody has named.
    """
    found = tuple(path for path in paths if not whole or told_as(path, whole) == path)
    filled = {above for path in found if (above := path.rpartition("/")[0]) not in whole}
    return tuple(path for path in found if path not in filled)


def told_as(path: str, whole: Collection[str]) -> str:
    """The outermost of the directories that stand for what is in them, of those around a path; or the path itself."""
    found = above = path
    while above := above.rpartition("/")[0]:
        if above in whole:
            found = above
    return found


def largest(folds: Sequence[Fold]) -> Fold | None:
    """The directory that stands for the most paths; None if there is no directory."""
    return max((entry for entry in folds if entry.count > 1), key=lambda entry: entry.count, default=None)


def _below(paths: list[str]) -> Fold:
    """The deepest directory that all of some sorted paths are below."""
    first, last = paths[0].split("/"), paths[-1].split("/")
    shared = 0
    while shared < len(first) - 1 and shared < len(last) - 1 and first[shared] == last[shared]:
        shared += 1
    return Fold(path="/".join(first[:shared]) + "/", count=len(paths))


def _wait(waiting: list[tuple[int, str, list[list[str]]]], directory: str, paths: list[str]) -> None:
    """Keep the paths by the entry of the directory that they are, or are below."""
    parts: dict[str, list[str]] = {}
    for path in paths:
        name, slash, _ = path[len(directory) :].partition("/")
        parts.setdefault(name + slash, []).append(path)
    heappush(waiting, (len(parts), directory, list(parts.values())))

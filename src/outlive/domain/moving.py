"""Directories that were moved while a task ran: which file a path below one of them was when it began.

Moving a directory is one call, and none of what lies in it is named. So the first that is heard of such
a file may be its new name, or the old one when the directory is back.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Moved = tuple[str, int, int]


class Moves:
    """Where moved directories came from; when they left it first, and by whom."""

    def __init__(self) -> None:
        self.count = 0
        self._origins: dict[str, Moved] = {}

    def add(self, at: int, by: int, source: str, target: str) -> None:
        """A directory has another name; if that is its first one, it is back."""
        self.count += 1
        for name in below(source, self._origins):
            self._origins[target + name[len(source) :]] = self._origins.pop(name)
        origin = self._origins.pop(source, (source, at, by))
        if origin[0] != target:
            self._origins[target] = origin

    def origin_of(self, path: str) -> Moved | None:
        """The name of a file at the beginning, if a directory took it along since."""
        above = path.rpartition("/")[0] if self._origins else ""
        while above:
            if above in self._origins:
                source, at, by = self._origins[above]
                return source + path[len(above) :], at, by
            above = above.rpartition("/")[0]
        return None


def below(directory: str, paths: Iterable[str]) -> list[str]:
    """Those of the paths that lie in a directory."""
    start = directory + "/"
    return [path for path in paths if path.startswith(start)]

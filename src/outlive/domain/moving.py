"""Directories that were moved while a task ran: which file a path below one of them was when it began.

Moving a directory is one call, and none of what lies in it is named. So the first that is heard of such
a file may be its new name, or the old one when the directory is back. And what is made under the old name
meanwhile need not be new: the directory that left may have held something of that name.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Moved = tuple[str, int, int]

MOST_MOVES = 200
"""Each is looked for in all that was heard of, so that more are not followed."""


class Moves:
    """Where moved directories came from; when they left it first, and by whom."""

    def __init__(self) -> None:
        self.count = 0
        self._origins: dict[str, Moved] = {}
        self._homes: dict[str, Moved] = {}
        """By the first names of those that are not there any more: their names now, empty outside of the tree."""
        self._outside: dict[str, bool] = {}
        """The names outside of the tree: whether anything happened below them since."""

    def add(self, at: int, by: int, source: str, target: str) -> bool:
        """A directory has another name; whether that is its first one, so that it is back."""
        self.count += 1
        origin = self._origin(at, by, source)
        moved = {name: self._origins.pop(name) for name in below(source, self._origins)}
        self._origins.pop(source, None)
        for name, (home, left_at, left_by) in ((source, origin), *moved.items()):
            now = target + name[len(source) :]
            if now == home:
                self._homes.pop(home, None)
                continue
            self._origins[now] = home, left_at, left_by
            if home:
                self._homes[home] = now, left_at, left_by
        return origin[0] == target

    def add_unfollowed(self, at: int, by: int, target: str) -> None:
        """A directory has this name now, which none had before; nobody knows any more what it was."""
        self._origins[target] = "", at, by

    def home_of(self, source: str) -> str:
        """The first name of a directory; empty if it was made where another one had left."""
        return self._origin(0, 0, source)[0]

    def add_outside(self, at: int, by: int, source: str, target: str) -> None:
        """A directory may have left the tree; or that was refused, and it is copied and removed under its name."""
        self.count += 1
        home, left_at, left_by = self._origin(at, by, source)
        self._outside[target] = False
        if home:
            self._homes[home] = "", left_at, left_by

    def touch_outside(self, path: str) -> None:
        """Something happens to a path outside of the tree."""
        above = path.rpartition("/")[0] if self._outside else ""
        while above:
            if above in self._outside:
                self._outside[above] = True
            above = above.rpartition("/")[0]

    def was_touched_outside(self, name: str) -> bool:
        """Whether anything happened in what has this name outside of the tree; so it may if nobody knows that name."""
        return self._outside.get(name, True)

    def is_back_from_outside(self, target: str) -> bool:
        """Something got this name from outside of the tree; whether one that had it at first has left."""
        if target not in self._homes or self._homes[target][0]:
            return False
        del self._homes[target]
        return True

    def _origin(self, at: int, by: int, source: str) -> Moved:
        """The first name of a directory; none if it was made where another one had left."""
        found = self._origins.get(source) or self.origin_of(source)
        return found or ("" if source in self._homes else source, at, by)

    def origin_of(self, path: str) -> Moved | None:
        """The name of a file at the beginning, if a directory took it along since; an empty one if it had none."""
        above = path.rpartition("/")[0] if self._origins else ""
        while above:
            if above in self._origins:
                source, at, by = self._origins[above]
                return source and source + path[len(above) :], at, by
            above = above.rpartition("/")[0]
        return None

    def left_from_above(self, path: str) -> Moved | None:
        """The directory around a path that is not there any more, by its first name; when it left, and by whom."""
        above = path.rpartition("/")[0] if self._homes else ""
        while above:
            if above in self._homes:
                _, at, by = self._homes[above]
                return above, at, by
            above = above.rpartition("/")[0]
        return None

    def name_now(self, home: str) -> str:
        """What a directory is called that had this name at first; empty if nobody knows."""
        return self._homes[home][0] if home in self._homes else ""


def below(directory: str, paths: Iterable[str]) -> list[str]:
    """Those of the paths that lie in a directory."""
    start = directory + "/"
    return [path for path in paths if path.startswith(start)]

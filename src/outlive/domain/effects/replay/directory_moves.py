"""Directories that moved while a task ran, and the first names of their files.

The call that moves a directory names none of the files in it. So the first call about such a file may use its new name.
A file that is created under the old name need not be new: the moved directory may contain it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Moved = tuple[str, int, int]

MOST_MOVES = 200
"""The number of moves that are followed. Each move is searched for in all known paths, so more would take too long."""


class DirectoryMoves:
    """The first names of moved directories, with the time and process of each move."""

    def __init__(self) -> None:
        self.count = 0
        self._origins: dict[str, Moved] = {}
        self._homes: dict[str, Moved] = {}
        """The present name of each moved directory by its first name; empty outside of the tree."""
        self._outside: dict[str, bool] = {}
        """Whether anything happened below a moved directory since its move, by its name outside of the tree."""

    def add(self, at: int, by: int, source: str, target: str) -> bool:
        """Record a move in the tree; return whether the directory got its first name."""
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
        """Record that a directory has a new name, and that its first name is not known."""
        self._origins[target] = "", at, by

    def home_of(self, source: str) -> str:
        """Return the first name of a directory; empty if it was made in place of another."""
        return self._origin(0, 0, source)[0]

    def add_outside(self, at: int, by: int, source: str, target: str) -> None:
        """Record a call that moves a directory out of the tree.

        If the kernel refused the call, the program copies the directory and removes it under its old name.
        """
        self.count += 1
        home, left_at, left_by = self._origin(at, by, source)
        self._outside[target] = False
        if home:
            self._homes[home] = "", left_at, left_by

    def touch_outside(self, path: str) -> None:
        """Record that something happened to a path outside of the tree."""
        above = path.rpartition("/")[0] if self._outside else ""
        while above:
            if above in self._outside:
                self._outside[above] = True
            above = above.rpartition("/")[0]

    def was_touched_outside(self, name: str) -> bool:
        """Return whether anything happened in a directory after it had left the tree.

        `name` is its name outside of the tree. Returns True if no directory is known to have got this name.
        """
        return self._outside.get(name, True)

    def is_back_from_outside(self, target: str) -> bool:
        """Return whether a directory may be back from outside the tree; forget its move."""
        if target not in self._homes or self._homes[target][0]:
            return False
        del self._homes[target]
        return True

    def _origin(self, at: int, by: int, source: str) -> Moved:
        """Return the first name of a directory, with time and process of its first move."""
        found = self._origins.get(source) or self.origin_of(source)
        return found or ("" if source in self._homes else source, at, by)

    def origin_of(self, path: str) -> Moved | None:
        """Return the first name of a path in a moved directory, with time and process.

        The name is empty if the path had none when the task began, or if it is not known. None means no move.
        """
        above = path.rpartition("/")[0] if self._origins else ""
        while above:
            if above in self._origins:
                source, at, by = self._origins[above]
                return source and source + path[len(above) :], at, by
            above = above.rpartition("/")[0]
        return None

    def left_from_above(self, path: str) -> Moved | None:
        """Return the directory that moved away from around a path, by its first name."""
        above = path.rpartition("/")[0] if self._homes else ""
        while above:
            if above in self._homes:
                _, at, by = self._homes[above]
                return above, at, by
            above = above.rpartition("/")[0]
        return None

    def name_now(self, home: str) -> str:
        """Return the present name of the directory `home`; empty if not known."""
        return self._homes[home][0] if home in self._homes else ""


def below(directory: str, paths: Iterable[str]) -> list[str]:
    """Return the paths that lie in a directory."""
    start = directory + "/"
    return [path for path in paths if path.startswith(start)]

"""Directories that moved while a task ran, and the first names of their files.

The first name of a path is its name when the task began. The system call that moves a directory does not name the
files in the directory. So the first recorded call about such a file may use the file's new name. A task may then
create a file under the old name. The file that had this name when the task began may now be in the moved directory.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Moved = tuple[str, int, int]

MOST_MOVES = 200
"""The largest number of directory moves that are followed.

Following more moves would take too long, because each move needs a search through all known paths.
"""


class DirectoryMoves:
    """The first names of moved directories, with the time and process of each move."""

    def __init__(self) -> None:
        self.count = 0
        self._origins: dict[str, Moved] = {}
        self._homes: dict[str, Moved] = {}
        """The present name of each moved directory. The key is the directory's first name.

        The present name is empty if the directory is now outside of the task's repositories.
        """
        self._outside: dict[str, bool] = {}
        """For each directory that left the repositories: whether it was used since.

        The key is the directory's new name, outside of the task's repositories. A directory was used if a recorded
        system call names a path in it.
        """

    def add(self, at: int, by: int, source: str, target: str) -> bool:
        """Record that a directory moved within the task's repositories.

        Returns True if the directory has the name again that it had when the task began.
        """
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
        """Record a directory's new name, if its name at the task's beginning is not known."""
        self._origins[target] = "", at, by

    def home_of(self, source: str) -> str:
        """Return the name that a directory had when the task began.

        Returns an empty string if the directory was created under the old name of a moved directory.
        """
        return self._origin(0, 0, source)[0]

    def add_outside(self, at: int, by: int, source: str, target: str) -> None:
        """Record a system call that moves a directory out of the task's repositories.

        The kernel may refuse the call, for example to another disk. Then the program copies the directory and removes
        the original.
        """
        self.count += 1
        home, left_at, left_by = self._origin(at, by, source)
        self._outside[target] = False
        if home:
            self._homes[home] = "", left_at, left_by

    def touch_outside(self, path: str) -> None:
        """Record a system call about a path outside of the task's repositories."""
        above = path.rpartition("/")[0] if self._outside else ""
        while above:
            if above in self._outside:
                self._outside[above] = True
            above = above.rpartition("/")[0]

    def was_touched_outside(self, name: str) -> bool:
        """Return whether a path in a directory outside of the repositories was used.

        `name` is the directory's name after it was moved out of the task's repositories. A path was used if a system
        call names it. Returns True if no move of a directory to this name is known.
        """
        return self._outside.get(name, True)

    def is_back_from_outside(self, target: str) -> bool:
        """Return whether a directory may have come back into the task's repositories.

        `target` is the directory's name when the task began. If the directory may be back, the record of the move away
        is deleted.
        """
        if target not in self._homes or self._homes[target][0]:
            return False
        del self._homes[target]
        return True

    def _origin(self, at: int, by: int, source: str) -> Moved:
        """Return a directory's name at the task's beginning, and its first move.

        The result has the name, and the time and the process of the move.
        """
        found = self._origins.get(source) or self.origin_of(source)
        return found or ("" if source in self._homes else source, at, by)

    def origin_of(self, path: str) -> Moved | None:
        """Return the name that a path in a moved directory had when the task began.

        The result also has the time of the move and the process that made it. The name is empty if the path did not
        exist when the task began, or if its first name is not known. Returns None if no directory around the path has
        moved.
        """
        above = path.rpartition("/")[0] if self._origins else ""
        while above:
            if above in self._origins:
                source, at, by = self._origins[above]
                return source and source + path[len(above) :], at, by
            above = above.rpartition("/")[0]
        return None

    def left_from_above(self, path: str) -> Moved | None:
        """Return the moved directory under whose old name a path lies.

        The result has the directory's name when the task began, the time of its move and the process that moved it.
        Returns None if there is no such directory.
        """
        above = path.rpartition("/")[0] if self._homes else ""
        while above:
            if above in self._homes:
                _, at, by = self._homes[above]
                return above, at, by
            above = above.rpartition("/")[0]
        return None

    def name_now(self, home: str) -> str:
        """Return the present name of a moved directory.

        `home` is the directory's name when the task began. Returns an empty string if the present name is not known.
        """
        return self._homes[home][0] if home in self._homes else ""


def below(directory: str, paths: Iterable[str]) -> list[str]:
    """Return the paths that lie in a directory."""
    start = directory + "/"
    return [path for path in paths if path.startswith(start)]

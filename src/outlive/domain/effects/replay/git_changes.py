"""Changes of git's own state, in the order in which they were observed."""

from __future__ import annotations

from outlive.domain.git.git_state import of_repository, part_of_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Move = tuple[int, str, int]
    """A change: its time, the changed part of git's state, and the process."""


class GitChanges:
    """The changes of git's state. Repeated changes by one process are recorded once."""

    def __init__(self) -> None:
        self._places: list[tuple[str, bool, str]] = []
        """Each git directory: its path, whether only one worktree uses it, and a suffix.

        The suffix names the repository in reports.
        """
        self._moves: list[Move] = []
        self._tried: dict[int, tuple[str, str]] = {}
        """The path and state of each directory that git tried to remove.

        The key is the index of the change in `_moves`.
        """

    def begin(self, places: Sequence[str]) -> None:
        """Set the repositories in which the task works.

        `places` lists the top, the git directory and the common directory of each repository in turn.

        The first repository is the one in which the task was launched. Only changes in other repositories are reported
        with a suffix that names the repository.
        """
        self._places = []
        for first in range(0, len(places), 3):
            top, own, common = (*places[first : first + 3], "", "")[:3]
            of = of_repository(top or own) if first else ""
            both = ((own, True), (common, False))
            self._places += [(git.rstrip("/") + "/", is_own, of) for git, is_own in both if git]

    def add(self, at: int, by: int, path: str, state: str, *, is_directory: bool, is_tidying: bool = False) -> None:
        """Record a change of a path in a git directory.

        `state` is the state before the change.
        """
        git, is_own, of = next(each for each in self._places if path.startswith(each[0]))
        part = part_of_git(path[len(git) :], is_own=is_own, is_directory=is_directory)
        if is_tidying and part != "packed-refs":
            return
        what = f"{part}{of}"
        last = len(self._moves) - 1
        if part is None or (last >= 0 and last not in self._tried and self._moves[last][1:] == (what, by)):
            return
        if is_directory and state[:1] == "d":
            self._tried[last + 1] = path, state
        self._moves.append((at, what, by))

    def told(self, is_there: Callable[[str, str], bool]) -> list[Move]:
        """Return the changes to report.

        Removals of directories that failed are left out. If a worktree was added or removed, the changes within it are
        left out. `is_there` returns whether a directory still has its earlier state.
        """
        found = [move for number, move in enumerate(self._moves) if not self._is_in_vain(number, is_there)]
        worktrees = {what for _, what, _ in found if what.startswith("worktree ")}
        return [move for move in found if move[1].partition(" of ")[2] not in worktrees]

    def _is_in_vain(self, number: int, is_there: Callable[[str, str], bool]) -> bool:
        tried = self._tried.get(number)
        return tried is not None and is_there(*tried)

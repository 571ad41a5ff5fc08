"""The paths whose content is recorded: worktrees, and small files of git."""

from __future__ import annotations

from outlive.domain.effects.temporary_paths import TEMPORARY
from outlive.observe.seccomp.new_repositories import NewRepositories

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from outlive.observe.git.repository import Repository

MOST_REPOSITORIES = 8
_SMALL_IN_GIT = ("HEAD", "ORIG_HEAD", "MERGE_HEAD", "refs/", "packed-refs", "config", "worktrees/")


class Scope:
    """The repositories that a task is known to work in, or that it enters later."""

    def __init__(self, repositories: Iterable[Repository]) -> None:
        self._tops: tuple[str, ...] = ()
        self._gits: tuple[str, ...] = ()
        self._room = MOST_REPOSITORIES
        self._small_in_gits: tuple[str, ...] = ()
        self._above: frozenset[str] = frozenset()
        for repository in repositories:
            self._add(repository)
        self._further = NewRepositories()
        self.on_further: Callable[[Repository | None], None] = lambda _: None
        """The function that is called with each repository that the task enters later.

        It is called once with None if the task enters too many repositories.
        """

    def _add(self, repository: Repository) -> None:
        self._room -= 1
        top, *gits = (root and root.rstrip("/") + "/" for root in repository.roots)
        self._tops += (top,) if top else ()
        self._gits = tuple(dict.fromkeys((*self._gits, *filter(None, gits))))
        self._small_in_gits = tuple(git + name for git in self._gits for name in _SMALL_IN_GIT)
        self._above = frozenset(top[:at] for top in self._tops for at in range(1, len(top)) if top[at] == "/")

    def tree_of(self, path: str) -> str | None:
        """Return the worktree that a file belongs to. Return None for git's own files."""
        if path.startswith(self._gits):
            return None
        return next((top for top in self._tops if path.startswith(top)), None)

    @property
    def trees(self) -> frozenset[str]:
        """The tops of all worktrees, each with a slash at its end."""
        return frozenset(self._tops)

    def concerns(self, path: str) -> bool | None:
        """Return whether to record the content that a path has before a change.

        Returns None if changes of the path are not reported at all.
        """
        if path.startswith(self._gits):
            return True if path.startswith(self._small_in_gits) and not path.endswith(".lock") else None
        if path.startswith(self._tops) or path in self._above:
            return True
        further = None if self._room < 0 else self._further.found_at(path)
        if further is not None:
            self._add_further(further)
            return self.concerns(path)
        return None if path.startswith(TEMPORARY) else False

    def leave_out(self, directory: str) -> None:
        """Report no more repositories in a directory that the task has moved."""
        if not directory.startswith(self._gits):
            self._further.leave_out(directory)

    def _add_further(self, repository: Repository) -> None:
        if self._room > 0:
            self._add(repository)
            self.on_further(repository)
        else:
            self._room = -1
            self.on_further(None)

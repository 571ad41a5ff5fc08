"""The repositories in which a task works.

They are found in the record of the task's system calls.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Repositories:
    """The top, the git directory and the common directory of each repository."""

    def __init__(self) -> None:
        self._known: list[str] = []
        self._further: list[str] = []
        self.tops: tuple[str, ...] = ()
        self.gits: tuple[str, ...] = ()
        self.stashes: frozenset[str] = frozenset()
        self.kept: dict[str, str] = {}
        """The worktree to which each HEAD file and each stash file belongs.

        The key is the path of the file. Changes of these files are reported together with the changed files of the
        worktree.
        """

    def begin(self, roots: Sequence[str]) -> list[str]:
        """Set the repositories in which an attempt begins.

        `roots` lists the top, the git directory and the common directory of each repository in turn. The returned list
        has the same form, and also has the repositories in which earlier attempts worked.
        """
        self._known = list(roots)
        return self._work_in([*self._known, *self._further])

    def come_to(self, roots: Sequence[str]) -> list[str]:
        """Add a repository in which the task began to work after its launch.

        Returns a list of all repositories, in the same form as `begin`.
        """
        self._further += roots
        return self._work_in([*self._known, *self._further])

    def _work_in(self, roots: list[str]) -> list[str]:
        places = list(zip(roots[::3], roots[1::3], roots[2::3], strict=False))
        self.tops = tuple(top.rstrip("/") + "/" for top, _, _ in places if top)
        self.gits = tuple(git.rstrip("/") + "/" for _, own, common in places for git in (own, common) if git)
        stashes = {f"{common or git}/refs/stash": top for top, git, common in reversed(places) if git}
        self.stashes = frozenset(stashes)
        self.kept = {**stashes, **{f"{git}/HEAD": top for top, git, _ in places if git}}
        return roots

    def is_told(self, path: str) -> bool:
        """Return whether changes of a path are reported.

        They are reported if the path is in a worktree, or is a directory around a worktree.
        """
        return path.startswith(self.tops) or any(top.startswith(path + "/") for top in self.tops)

    def is_git(self, path: str) -> bool:
        """Return whether a path is a git directory."""
        return path + "/" in self.gits

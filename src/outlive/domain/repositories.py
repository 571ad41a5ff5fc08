"""The repositories that a task works in, as its journal tells them: those it begins with, and those it comes to."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Repositories:
    """Where files are told by what they hold: the top, the git directory and the common one of each repository."""

    def __init__(self) -> None:
        self._known: list[str] = []
        self._further: list[str] = []
        self.tops: tuple[str, ...] = ()
        self.gits: tuple[str, ...] = ()
        self.stashes: frozenset[str] = frozenset()
        self.kept: dict[str, str] = {}
        """What git keeps that a file may be taken for, a HEAD or a stash, and which worktree it is of.

        It has a story as files have, for whoever asks what is held now.
        """

    def begin(self, roots: Sequence[str]) -> list[str]:
        """An attempt begins with these; what an earlier one came to is not forgotten. All of them are given back."""
        self._known = list(roots)
        return self._work_in([*self._known, *self._further])

    def come_to(self, roots: Sequence[str]) -> list[str]:
        """It has come to one more."""
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
        """Whether it is part of a worktree; a directory that one lies in takes all of it along, wherever it goes."""
        return path.startswith(self.tops) or any(top.startswith(path + "/") for top in self.tops)

    def is_git(self, path: str) -> bool:
        """Whether it is a git directory."""
        return path + "/" in self.gits

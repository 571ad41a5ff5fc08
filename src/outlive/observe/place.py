"""Where a task works: the worktree its directory lies in, and where that keeps its git state."""

from __future__ import annotations

import os

from outlive.domain.value import Value

_POINTER = "gitdir: "


class Place(Value):
    """A directory's worktree and git directory; None for both outside of a repository."""

    top: str | None = None
    git_directory: str | None = None


def place_of(directory: str) -> Place:
    """Where the directory lies. Only names and one small file are looked at; nothing is executed."""
    top = os.path.realpath(directory)
    while True:
        mark = top + "/.git" if top != "/" else "/.git"
        if os.path.isdir(mark):
            return Place(top=top, git_directory=mark)
        if os.path.isfile(mark):
            return Place(top=top, git_directory=_pointed_to(mark, top))
        above = os.path.dirname(top)
        if above == top:
            return Place()
        top = above


def _pointed_to(mark: str, top: str) -> str | None:
    """The git directory that the `.git` file of a further worktree or a submodule names."""
    try:
        with open(mark, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(4096).strip()
    except OSError:
        return None
    if not text.startswith(_POINTER):
        return None
    return os.path.realpath(os.path.join(top, text.removeprefix(_POINTER)))

"""Where a task works: the worktree its directory lies in, and where that keeps its git state."""

from __future__ import annotations

import os

from outlive.domain.value import Value

_POINTER = "gitdir: "


class Place(Value):
    """A directory's worktree and git directory; None outside of a repository, and no worktree in a bare one."""

    top: str | None = None
    git_directory: str | None = None
    common_directory: str | None = None
    """Where a further worktree has what all worktrees of its repository share: branches, stash, tags."""


def place_of(directory: str) -> Place:
    """Where the directory lies. Only names and one small file are looked at; nothing is executed."""
    top = os.path.realpath(directory)
    while True:
        mark = top + "/.git" if top != "/" else "/.git"
        if os.path.isdir(mark):
            return Place(top=top, git_directory=mark)
        if os.path.isfile(mark):
            own = _pointed_to(mark, top, _POINTER)
            common = None if own is None else _pointed_to(own + "/commondir", own)
            return Place(top=top, git_directory=own, common_directory=common)
        if os.path.isfile(top + "/HEAD") and os.path.isdir(top + "/objects") and os.path.isdir(top + "/refs"):
            return Place(git_directory=top)
        above = os.path.dirname(top)
        if above == top:
            return Place()
        top = above


def _pointed_to(mark: str, base: str, start: str = "") -> str | None:
    """The directory that a small file of git's names: the `.git` of a further worktree or a submodule, `commondir`."""
    try:
        with open(mark, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(4096).strip()
    except OSError:
        return None
    if not text.startswith(start) or "\0" in text:
        return None
    return os.path.realpath(os.path.join(base, text.removeprefix(start)))

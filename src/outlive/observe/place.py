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

    @property
    def roots(self) -> tuple[str, str, str]:
        """All three, as a journal tells them; empty where there is none."""
        return self.top or "", self.git_directory or "", self.common_directory or ""


def place_of(directory: str) -> Place:
    """Where the directory lies. Only names and one small file are looked at; nothing is executed."""
    place = os.path.realpath(directory)
    while True:
        found = place_at(place)
        if found is not None:
            return found
        above = os.path.dirname(place)
        if above == place:
            return Place()
        place = above


def place_at(directory: str) -> Place | None:
    """The worktree whose top, or the bare repository that, is exactly there."""
    mark = directory.rstrip("/") + "/.git"
    if os.path.isdir(mark):
        # Calls are told by where paths lead: some keep all git directories in one place, with a link to each.
        return Place(top=directory, git_directory=os.path.realpath(mark) if os.path.islink(mark) else mark)
    if os.path.isfile(mark):
        own = _pointed_to(mark, directory, _POINTER)
        common = None if own is None else _pointed_to(own + "/commondir", own)
        return Place(top=directory, git_directory=own, common_directory=common)
    parts = (directory + "/HEAD", directory + "/objects", directory + "/refs")
    if os.path.isfile(parts[0]) and os.path.isdir(parts[1]) and os.path.isdir(parts[2]):
        return Place(git_directory=directory)
    return None


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

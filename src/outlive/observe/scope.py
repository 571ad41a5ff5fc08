"""Where the content of files matters: in worktrees, and in the small files of their git directories."""

from __future__ import annotations

from outlive.domain.places import TEMPORARY
from outlive.observe.further import Further

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from outlive.observe.place import Place

MOST_REPOSITORIES = 8
_SMALL_IN_GIT = ("HEAD", "ORIG_HEAD", "MERGE_HEAD", "refs/", "packed-refs", "config", "worktrees/")


class Scope:
    """The repositories that a task works in, as far as they are known; it learns of those that the task comes to."""

    def __init__(self, places: Iterable[Place]) -> None:
        self._tops: tuple[str, ...] = ()
        self._gits: tuple[str, ...] = ()
        self._room = MOST_REPOSITORIES
        for place in places:
            self._take_in(place)
        self._further = Further()
        self.on_further: Callable[[Place | None], None] = lambda _: None
        """Called with each repository that nobody knew of, when the task comes to it; once with None for all others."""

    def _take_in(self, place: Place) -> None:
        self._room -= place.git_directory is not None
        if place.top is not None:
            self._tops += (place.top.rstrip("/") + "/",)
        gits = (git.rstrip("/") + "/" for git in (place.git_directory, place.common_directory) if git is not None)
        self._gits = tuple(dict.fromkeys((*self._gits, *gits)))
        self._small_in_gits = tuple(git + name for git in self._gits for name in _SMALL_IN_GIT)
        self._above = frozenset(top[:at] for top in self._tops for at in range(1, len(top)) if top[at] == "/")

    def tree_of(self, path: str) -> str | None:
        """The worktree whose file it is; None for what git keeps itself, and elsewhere."""
        if path.startswith(self._gits):
            return None
        return next((top for top in self._tops if path.startswith(top)), None)

    @property
    def trees(self) -> frozenset[str]:
        """All worktrees."""
        return frozenset(self._tops)

    def concerns(self, path: str) -> bool | None:
        """Whether what a path held before is worth knowing; None if nobody is told of it: temporary, or git's own."""
        if path.startswith(self._gits):
            return True if path.startswith(self._small_in_gits) and not path.endswith(".lock") else None
        if path.startswith(self._tops) or path in self._above:
            return True
        further = None if self._room < 0 else self._further.found_at(path)
        if further is not None:
            self._meet(further)
            return self.concerns(path)
        return None if path.startswith(TEMPORARY) else False

    def leave_out(self, directory: str) -> None:
        """A directory that the task has moved is nothing it comes to; git moves nothing but files."""
        if not directory.startswith(self._gits):
            self._further.leave_out(directory)

    def _meet(self, place: Place) -> None:
        if self._room > 0:
            self._take_in(place)
            self.on_further(place)
        else:
            self._room = -1
            self.on_further(None)

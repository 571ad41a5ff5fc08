"""Repositories that a task enters although its command text does not name them.

A system call of the task waits for this check. So each directory is checked only once, when a file in it is about to
change. A repository that the task creates is not reported, because its directory was checked before the repository
existed.
"""

from __future__ import annotations

import os

from outlive.observe.git.repository import repository_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from outlive.observe.git.repository import Repository

_MOST_KNOWN = 50_000
_GITS_OWN = "/.git/"


class NewRepositories:
    """The search for repositories that a task enters while it runs."""

    def __init__(self) -> None:
        self._without: set[str] = set()
        """Directories that do not lie in a repository."""
        self._moved: set[str] = set()
        # A repository at the home directory or above keeps a user's files under version control. Such a repository is
        # not a project.
        home = os.path.realpath(os.path.expanduser("~"))
        self._too_wide = tuple(home[:at] for at in range(len(home) + 1) if home[at : at + 1] in ("", "/"))

    def leave_out(self, directory: str) -> None:
        """Report no repository in a directory that the task has moved.

        The moved repository is already recorded under its old name.
        """
        if len(self._moved) < _MOST_KNOWN:
            self._moved.add(directory)

    def found_at(self, path: str) -> Repository | None:
        """Return the repository that a path lies in, or None outside of repositories.

        A directory without a repository is checked only once.
        """
        above = path.rpartition("/")[0]
        if above in self._without or len(self._without) > _MOST_KNOWN:
            return None
        # A path below `.git` belongs to the worktree around it. Checked alone, `.git` would look like a bare
        # repository.
        place = f"{above}/".partition(_GITS_OWN)[0].rstrip("/")
        seen = {above}
        while place not in self._without and place not in self._too_wide:
            found = repository_at(place)
            if found is not None and self._moved.isdisjoint(_with_all_above(place)):
                return found
            seen.add(place)
            place = place.rpartition("/")[0]
        self._without |= seen
        return None


def _with_all_above(place: str) -> Iterator[str]:
    while place:
        yield place
        place = place.rpartition("/")[0]

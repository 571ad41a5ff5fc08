"""Further repositories: those that a task comes to without its text saying so, by a variable or in a script.

A command waits while we look, so each directory is looked at once, when something is about to change in it. That also
leaves out what the task makes itself, a clone or a worktree: its directory was no repository then.
"""

from __future__ import annotations

import os

from outlive.observe.place import place_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from outlive.observe.place import Place

_MOST_KNOWN = 50_000
_GITS_OWN = "/.git/"


class Further:
    """Finds them."""

    def __init__(self) -> None:
        self._without: set[str] = set()
        """Directories that lie in none."""
        self._moved: set[str] = set()
        # One that all of the user's files lie in has them under version control, and is nothing they work in.
        home = os.path.realpath(os.path.expanduser("~"))
        self._too_wide = tuple(home[:at] for at in range(len(home) + 1) if home[at : at + 1] in ("", "/"))

    def leave_out(self, directory: str) -> None:
        """What lies there, the task has put there: it is told by the names that it had before."""
        if len(self._moved) < _MOST_KNOWN:
            self._moved.add(directory)

    def found_at(self, path: str) -> Place | None:
        """The repository that a path lies in; None if it is in none, or that has been asked before."""
        above = path.rpartition("/")[0]
        if above in self._without or len(self._without) > _MOST_KNOWN:
            return None
        # What git keeps itself is of the tree around it, also where it could be taken for a repository without one.
        place = f"{above}/".partition(_GITS_OWN)[0].rstrip("/")
        seen = {above}
        while place not in self._without and place not in self._too_wide:
            found = place_at(place)
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

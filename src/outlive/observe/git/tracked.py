"""The check whether git tracks files in a directory, which may already be removed."""

from __future__ import annotations

import os
import time

from outlive.observe.git.index import read_index
from outlive.observe.git.repository import find_repository
from outlive.observe.git.safe_read import Unknown

# Reading the git indexes of all repositories takes at most this long in total.
_LONGEST_S = 0.5


class Tracked:
    """The tracked files of some repositories. Each git index is read only once."""

    def __init__(self) -> None:
        self._until = time.monotonic() + _LONGEST_S
        self._paths: dict[str, tuple[bytes, ...] | None] = {}
        """The paths in each git index, by its file. None if the index cannot be read."""

    def may_be_below(self, directory: str) -> bool:
        """Return whether git tracks a file below a directory.

        Returns True if the index of the repository cannot be read.
        """
        if not directory.startswith("/"):
            return False
        place = os.path.join(os.path.realpath(os.path.dirname(directory)), os.path.basename(directory))
        repository = find_repository(place)
        if repository is None or repository.top is None:
            return False
        paths = self._paths_in(repository.git_dir + "/index")
        name = os.path.relpath(place, os.path.realpath(repository.top))
        start = b"" if name == "." else os.fsencode(name) + b"/"
        return paths is None or any(path.startswith(start) for path in paths)

    def _paths_in(self, index: str) -> tuple[bytes, ...] | None:
        if index not in self._paths:
            try:
                self._paths[index] = tuple(read_index(index, until=self._until).entries)
            except Unknown:
                self._paths[index] = None
        return self._paths[index]

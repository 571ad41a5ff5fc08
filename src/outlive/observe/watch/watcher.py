"""File-system events, recorded if system calls cannot be observed.

An event does not show which process changed a path. A file that disappears within a tenth of a second may be missed.
Only directories with tracked files or git's refs are watched, because a `node_modules` would use up the user's inotify
watches.
"""

from __future__ import annotations

import os
import time
from importlib.machinery import PathFinder

from outlive.observe.compiled_part import load_compiled
from outlive.observe.journal import UNSEEN, escaped
from outlive.observe.path_state import ABSENT, changed_at_ns, state_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from outlive.observe.journal import Journal
    from outlive.observe.watch.baseline import Baseline

# The watcher wakes twenty times a second to check whether it should stop. These checks take less than 0.1 % of a
# processor.
_STEP_MS, _AT_ONCE_MS = 50, 100
# While changes keep coming, `watchfiles` reports the earliest changes only when it checks for the third time.
_STEPS_TO_THE_END = 3
_TRIES = 5
_MOST_OF_A_BATCH = 500
_MOST_PATHS = 20_000
_BATCH_TAKES_AT_MOST = 0.2
_ADDED = 1


def is_installed() -> bool:
    """Return whether `watchfiles` is installed."""
    return PathFinder.find_spec("watchfiles") is not None


def load_watcher() -> Any:
    """Return the watcher of `watchfiles`, without importing its large event loop."""
    return load_compiled("watchfiles", "_rust_notify").RustNotify


class Watcher:
    """The file-system watcher of one task."""

    def __init__(self, watcher: Any, baseline: Baseline, journal: Journal, ended_ns: Callable[[], int | None]) -> None:
        """Begin to watch the directories of the baseline.

        The baseline has the directories to watch and the states of their files. Changes are written to `journal`.
        `ended_ns` returns the time at which the task ended, or None while the task runs. Changes after this time are
        not recorded.
        """
        self._make = watcher
        self._baseline = baseline
        self._journal = journal
        self._ended_ns = ended_ns
        self._directories = frozenset(baseline.watched.directories)
        places = baseline.watched.places
        self._gits = tuple(git.rstrip("/") + "/" for git in (*places[1::3], *places[2::3]) if git)
        self._last: dict[str, str] = {}
        self._before: dict[str, str] = {}
        self._is_stopping = False
        self._steps_since = 0
        self._notify = self._begin()

    @property
    def touched(self) -> dict[str, str]:
        """The changed paths in worktrees, each with its state before the change."""
        return {path: self._before[path] for path in self._last}

    def stop(self) -> None:
        """Stop soon, after the events that have already arrived are written."""
        self._is_stopping = True

    def is_set(self) -> bool:
        """Return whether to stop. `watchfiles` calls this function at every step.

        If the result is True, `watchfiles` discards the events that it has not reported yet. So the result is True only
        some steps after `stop` was called.
        """
        self._steps_since += self._is_stopping
        return self._steps_since > _STEPS_TO_THE_END

    def run(self) -> None:
        """Record events until `stop` is called."""
        while (batch := self._notify.watch(_AT_ONCE_MS, _STEP_MS, 0, self)) != "stop":
            self._record_batch(batch)
        self._notify.close()

    def _begin(self) -> Any:
        # Directories that cannot be read are left out here. `watchfiles` has an option to ignore such directories, but
        # with this option `watchfiles` does not report an exceeded limit either.
        for _ in range(_TRIES):
            there = [each for each in self._baseline.watched.directories if os.access(each, os.R_OK)]
            try:
                return self._make(there, False, False, 0, False, False)
            except (FileNotFoundError, PermissionError):
                continue  # a directory was removed after the check
        raise OSError("directories are created and removed too fast")

    def _record_batch(self, batch: set[tuple[int, str]] | str) -> None:
        if isinstance(batch, str):
            return
        at, until = self._journal.now(), time.monotonic() + _BATCH_TAKES_AT_MOST
        moved = [(change, path) for change, path in batch if path in self._directories]
        if any(change == _ADDED for change, _ in moved):
            # The kernel has ended the watch of the removed directory, and does not watch the new directory of the same
            # name. So watch all directories anew.
            self._notify.close()
            self._notify = self._begin()
        below = (path for _, directory in moved for path in self._baseline.below(directory))
        for number, path in enumerate(dict.fromkeys((*sorted(path for _, path in batch), *below))):
            if number >= _MOST_OF_A_BATCH or len(self._last) >= _MOST_PATHS or time.monotonic() > until:
                self._note(at, "gap", "too many files changed at once to check all of them")
                break
            self._record_change(at, path)
        self._journal.flush()

    def _record_change(self, at: int, path: str) -> None:
        ended_ns = self._ended_ns()
        if ended_ns is not None and changed_at_ns(path) > ended_ns:
            return
        if path.startswith(self._gits):
            if path.endswith(".lock"):
                return
            self._journal.add(at, f"seen\t0\t{UNSEEN}\t{escaped(path)}")
            return
        if path in self._directories:
            return
        if path not in self._before:
            self._before[path] = self._baseline.state(path)
        before = self._before[path]
        state = state_like(path, before)
        # A file that was created and removed between two checks is not reported, like a temporary file.
        if state == self._last.get(path) or (before == state == ABSENT and path not in self._last):
            return
        self._last[path] = state
        self._journal.add(at, f"seen\t0\t{before}\t{escaped(path)}\t{state}\t{escaped(path)}")

    def _note(self, at: int, operation: str, *words: str) -> None:
        self._journal.add(at, f"{operation}\t0\t{UNSEEN}" + "".join(f"\t{escaped(word)}" for word in words))

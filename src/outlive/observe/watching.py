"""Watching: what a file system says of changes, where nobody can look at system calls.

It tells that a path changed and roughly when, never who did it; what comes and goes within a tenth
of a second may be missed. Only directories with tracked files are watched, and those where git
keeps what it points to: a `node_modules` would use up what a user may watch in all.
"""

from __future__ import annotations

import os
import time
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder, PathFinder
from importlib.util import module_from_spec

from outlive.observe.content import ABSENT, changed_at_ns, state_like
from outlive.observe.journal import UNSEEN, escaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from outlive.observe.baseline import Baseline
    from outlive.observe.journal import Journal

# The watcher wakes twenty times a second to look whether it should stop: less than a thousandth of a processor.
_STEP_MS, _AT_ONCE_MS = 50, 100
# While more and more changes, what changed first is told in the third step.
_STEPS_TO_THE_END = 3
_TRIES = 5
_MOST_OF_A_BATCH = 500
_MOST_PATHS = 20_000
_BATCH_TAKES_AT_MOST = 0.2
_ADDED = 1


def is_installed() -> bool:
    """Whether `watchfiles` is there."""
    return PathFinder.find_spec("watchfiles") is not None


def load_watcher() -> Any:
    """The part of `watchfiles` that watches.

    The package itself would import an event loop, which costs ten times as much memory.
    """
    package = PathFinder.find_spec("watchfiles")
    for place in (package.submodule_search_locations or ()) if package is not None else ():
        found = FileFinder(place, (ExtensionFileLoader, EXTENSION_SUFFIXES)).find_spec("_rust_notify")
        if found is not None and found.loader is not None:
            module = module_from_spec(found)
            found.loader.exec_module(module)
            return module.RustNotify
    raise ImportError("watchfiles cannot be loaded")


class Watcher:
    """One task's watcher, until it is told to stop."""

    def __init__(self, watcher: Any, baseline: Baseline, journal: Journal, ended_ns: Callable[[], int | None]) -> None:
        """`ended_ns` tells when the task has ended: what changes after that is of others."""
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
        """The paths of worktrees that changed, and what they held before."""
        return {path: self._before[path] for path in self._last}

    def stop(self) -> None:
        """Stop soon, once what has been noticed already is written down."""
        self._is_stopping = True

    def is_set(self) -> bool:
        """Whether to stop, as the watcher asks at every step; it forgets then what it has not told yet."""
        self._steps_since += self._is_stopping
        return self._steps_since > _STEPS_TO_THE_END

    def run(self) -> None:
        """Until it is told to stop."""
        while (batch := self._notify.watch(_AT_ONCE_MS, _STEP_MS, 0, self)) != "stop":
            self._take(batch)
        self._notify.close()

    def _begin(self) -> Any:
        # Told to ignore what it may not read, it would be silent about limits as well.
        for _ in range(_TRIES):
            there = [each for each in self._baseline.watched.directories if os.access(each, os.R_OK)]
            try:
                return self._make(there, False, False, 0, False, False)
            except (FileNotFoundError, PermissionError):
                continue  # it went away in between
        raise OSError("directories come and go too fast")

    def _take(self, batch: set[tuple[int, str]] | str) -> None:
        if isinstance(batch, str):
            return
        at, until = self._journal.now(), time.monotonic() + _BATCH_TAKES_AT_MOST
        moved = [(change, path) for change, path in batch if path in self._directories]
        if any(change == _ADDED for change, _ in moved):
            # A directory that went away has taken its watch with it.
            self._notify.close()
            self._notify = self._begin()
        below = (path for _, directory in moved for path in self._baseline.below(directory))
        for number, path in enumerate(dict.fromkeys((*sorted(path for _, path in batch), *below))):
            if number >= _MOST_OF_A_BATCH or len(self._last) >= _MOST_PATHS or time.monotonic() > until:
                self._note(at, "gap", "more changed at once than could be looked at")
                break
            self._look(at, path)
        self._journal.flush()

    def _look(self, at: int, path: str) -> None:
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
        # A file of a moment leaves no trace, as one of a temporary name does not either.
        if state == self._last.get(path) or (before == state == ABSENT and path not in self._last):
            return
        self._last[path] = state
        self._journal.add(at, f"seen\t0\t{before}\t{escaped(path)}\t{state}\t{escaped(path)}")

    def _note(self, at: int, operation: str, *words: str) -> None:
        self._journal.add(at, f"{operation}\t0\t{UNSEEN}" + "".join(f"\t{escaped(word)}" for word in words))

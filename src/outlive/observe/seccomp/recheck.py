"""A second check of changed paths, after the changing process has closed them.

The observer sees a call before the call happens, so only a later check shows the result of the call. By the end of the
task, another process may have changed the file, and this change would count as a change by the task. So the paths are
checked again when the task executes its next program. Paths that are still open are left out, because they may change
again. For example, a server that emptied its log can write to the log without another observed call.
"""

from __future__ import annotations

import os
import time
from stat import S_IWUSR

from outlive.observe.path_state import state_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

# The task's next call waits for this check, so the time of the check is limited. Paths that are not checked in this
# time are checked at the next exec.
_AT_MOST_S = 0.005
_TO_ASK_ALL_S = 0.1
# After the first 0.1 s, the checks take at most this share of the task's time, however many processes and files exist.
_SHARE, _AT_FIRST_S = 0.01, 0.1
_MOST_OPEN = 256
_MOST_PATHS = 20_000
_CONTENT = ("f", "l", "u")


class Recheck:
    """The existing paths that have changed since they were last checked."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        """The state of each path before the task's first change to the path."""
        self._by: dict[str, tuple[int, str]] = {}
        """The thread that changed each path last, and the path's state before that change."""
        self._since = time.monotonic()
        self._spent = 0.0

    def changed(self, path: str, before: str, thread: int) -> None:
        """Remember that a thread is about to change a path.

        `before` is the state before the change. A new path is ignored, because other processes do not know the path
        yet.
        """
        if path not in self._first:
            if before[:1] not in _CONTENT or len(self._first) == _MOST_PATHS:
                return
            self._first[path] = before
        self._by[path] = thread, before

    def look(self) -> list[tuple[str, str]]:
        """Return the paths that are again as before the task's first change to them.

        Each path comes with its state. Paths that a process still has open for writing are left out.
        """
        now = time.monotonic()
        if not self._by or self._spent > _AT_FIRST_S + _SHARE * (now - self._since):
            return []
        found = self._restored(now + _AT_MOST_S)
        written = open_for_writing(found, now + _TO_ASK_ALL_S) if found else None
        free = [] if written is None else [path for path in found if path not in written]
        for path in free:
            del self._by[path]
        self._spent += time.monotonic() - now
        return [(path, found[path]) for path in free]

    def _restored(self, until: float) -> dict[str, str]:
        """Return the paths that are again as before their first change, and their states.

        A path is left out while the thread that changed it last has it open.
        """
        found: dict[str, str] = {}
        opened: dict[int, Container[str]] = {}
        for path, (thread, before) in list(self._by.items()):
            if time.monotonic() > until:
                break
            if thread not in opened:
                opened[thread] = _opened_by(thread)
            if path in opened[thread]:
                continue
            state = state_like(path, "")
            if before != state == self._first[path]:
                found[path] = state
            else:
                del self._by[path]
        return found


class _AnyPath:
    """A collection that contains every path.

    It is used for a thread whose open files are unknown.
    """

    def __contains__(self, _: object) -> bool:
        return True


def _opened_by(thread: int) -> Container[str]:
    """Return the files that a thread has open, or no file if the thread is gone."""
    here = f"/proc/{thread}/fd"
    try:
        names = os.listdir(here)
        return {os.readlink(f"{here}/{name}") for name in names} if len(names) <= _MOST_OPEN else _AnyPath()
    except FileNotFoundError:
        return _AnyPath() if os.path.exists(here) else ()  # a file was closed during the listing
    except OSError:
        return _AnyPath()


def open_for_writing(paths: Container[str], until: float) -> set[str] | None:
    """Return those of `paths` that a process has open for writing.

    Returns None if there was no time to check all processes before the time `until`.
    """
    found: set[str] = set()
    for process in filter(str.isdecimal, os.listdir("/proc")):
        if time.monotonic() > until:
            return None
        here = f"/proc/{process}/fd"
        try:
            names = os.listdir(here)
        except OSError:
            continue  # the process has ended, or belongs to another user
        for name in names:
            try:
                path = os.readlink(f"{here}/{name}")
                if path in paths and os.lstat(f"{here}/{name}").st_mode & S_IWUSR:
                    found.add(path)
            except OSError:
                continue  # the file was closed meanwhile
    return found

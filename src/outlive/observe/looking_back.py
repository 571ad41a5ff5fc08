"""What paths hold once whoever changed them has let go of them.

A call is seen before it is made, so what a path holds afterwards is known from the next one; without one,
from the end, which may be an hour later. Whoever changes it until then would be taken for the task. So it is
looked at again when the task begins its next program: mostly the one that changed it is done by then. Who has
it open goes on without a call, and nobody else may be blamed for that: a server, say, whose log was emptied.
"""

from __future__ import annotations

import os
import time
from stat import S_IWUSR

from outlive.observe.content import state_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

# The task's next call waits for it; what there was no time for is looked at when it begins another program.
_AT_MOST_S = 0.005
_TO_ASK_ALL_S = 0.1
# However many programs it begins, and however many files are open: it takes no more of the task's time.
_SHARE, _AT_FIRST_S = 0.01, 0.1
_MOST_OPEN = 256
_MOST_PATHS = 20_000
_CONTENT = ("f", "l", "u")


class LookingBack:
    """The paths that were there before, and were changed since they were looked at."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        """What each held at first."""
        self._by: dict[str, tuple[int, str]] = {}
        """Who changed it last, and what it held until then."""
        self._since = time.monotonic()
        self._spent = 0.0

    def changed(self, path: str, before: str, thread: int) -> None:
        """A thread changes it now. Nobody else changes what is new, and of what lies elsewhere no content is known."""
        if path not in self._first:
            if before[:1] not in _CONTENT or len(self._first) == _MOST_PATHS:
                return
            self._first[path] = before
        self._by[path] = thread, before

    def look(self) -> list[tuple[str, str]]:
        """Each path that was put back and that nobody is at any more, and what it holds."""
        now = time.monotonic()
        if not self._by or self._spent > _AT_FIRST_S + _SHARE * (now - self._since):
            return []
        found = self._put_back(now + _AT_MOST_S)
        written = open_for_writing(found, now + _TO_ASK_ALL_S) if found else None
        free = [] if written is None else [path for path in found if path not in written]
        for path in free:
            del self._by[path]
        self._spent += time.monotonic() - now
        return [(path, found[path]) for path in free]

    def _put_back(self, until: float) -> dict[str, str]:
        """Those that hold again what they held at first, now that whoever changed them has closed them."""
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


class _All:
    """Nobody can tell which."""

    def __contains__(self, _: object) -> bool:
        return True


def _opened_by(thread: int) -> Container[str]:
    """What a thread may go on to write to; nothing, if it is gone."""
    here = f"/proc/{thread}/fd"
    try:
        names = os.listdir(here)
        return {os.readlink(f"{here}/{name}") for name in names} if len(names) <= _MOST_OPEN else _All()
    except FileNotFoundError:
        return _All() if os.path.exists(here) else ()  # one was closed just now
    except OSError:
        return _All()


def open_for_writing(paths: Container[str], until: float) -> set[str] | None:
    """Those of the paths that any process may write to: it got that from whoever opened it, or opened it before.

    None if there was no time to ask all of them.
    """
    found: set[str] = set()
    for process in filter(str.isdecimal, os.listdir("/proc")):
        if time.monotonic() > until:
            return None
        here = f"/proc/{process}/fd"
        try:
            names = os.listdir(here)
        except OSError:
            continue  # gone, or somebody else's
        for name in names:
            try:
                path = os.readlink(f"{here}/{name}")
                if path in paths and os.lstat(f"{here}/{name}").st_mode & S_IWUSR:
                    found.add(path)
            except OSError:
                continue  # closed just now
    return found

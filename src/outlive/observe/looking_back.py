"""What paths hold once whoever changed them has let go of them.

A call is seen before it is made, so what a path holds afterwards is known from the next one; without one,
from the end, which may be an hour later. Whoever changes it until then would be taken for the task. So it is
looked at again when the task begins its next program: mostly the one that changed it is done by then.
"""

from __future__ import annotations

import os
import time

from outlive.observe.content import UNREADABLE, state_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator

# The task's next call waits for it; what there was no time for is looked at when it begins another program.
_AT_MOST_S = 0.005
_MOST_OPEN = 256
_CONTENT = ("f", "l", "u")


class LookingBack:
    """The paths that were there before, and were changed since they were looked at."""

    def __init__(self) -> None:
        self._by: dict[str, int] = {}

    def changed(self, path: str, before: str, thread: int) -> None:
        """A thread changes it now. Nobody else changes what is new, and of what lies elsewhere no content is known."""
        if before[:1] in _CONTENT or path in self._by:
            self._by[path] = thread

    def look(self) -> Iterator[tuple[str, str]]:
        """Each path that nobody is at any more, and what it holds."""
        until = time.monotonic() + _AT_MOST_S
        opened: dict[int, Container[str]] = {}
        for path, thread in list(self._by.items()):
            if time.monotonic() > until:
                break
            if thread not in opened:
                opened[thread] = _opened_by(thread)
            if path not in opened[thread]:
                del self._by[path]
                if (state := state_like(path, "")) != UNREADABLE:
                    yield path, state


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

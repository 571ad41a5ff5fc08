"""A wait for a condition that is checked whenever a process writes to a file."""

from __future__ import annotations

import time
from select import POLLIN, poll

from outlive.linux.syscalls import drain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# The polling interval, which is used only if the user has no inotify instance left.
_LOOK_MS = 100


def wait_until(is_so: Callable[[], bool], changes: int | None, seconds: float) -> bool:
    """Wait until a condition is true. Return False if this takes more than `seconds`.

    The condition is checked after each event of the inotify descriptor `changes`. If `changes` is None, the condition
    is polled.
    """
    waiting, until = poll(), time.monotonic() + seconds
    if changes is not None:
        waiting.register(changes, POLLIN)
    while not is_so():
        left_ms = (until - time.monotonic()) * 1000
        if left_ms <= 0:
            return False
        waiting.poll(left_ms if changes is not None else min(left_ms, _LOOK_MS))
        if changes is not None:
            drain(changes)
    return True

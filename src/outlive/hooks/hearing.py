"""Waiting for what another hook notes or records: asleep until the kernel says that something was written."""

from __future__ import annotations

import time
from select import POLLIN, poll

from outlive.bundle.kernel import drain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# Only where the user has no inotify instance left: then we look instead of being told.
_LOOK_MS = 100


def wait_until(is_so: Callable[[], bool], changes: int | None, seconds: float) -> bool:
    """Asleep until something is so, which may be whenever `changes` is readable; False if it is not in time."""
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

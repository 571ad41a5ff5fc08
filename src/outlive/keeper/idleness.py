"""Whether a task still does anything: it writes, or its processes use the processor.

A compiler prints nothing for an hour and is not idle; a server that waits for a connection that
never comes is, though a timer wakes it now and then. So what counts is output, or at least one
hundredth of a processor since the last look. Looks are rare: eight in the span that is allowed.
"""

from __future__ import annotations

import os
import time

from outlive.bundle.processes import stat_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import timedelta

_LOOKS = 8
_SHORTEST = 0.02
_WORKING = 0.01
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_TIMES = slice(11, 15)  # utime, stime and those of its children that it has waited for


class Idleness:
    """How long a task has been idle, from looks at its output and its processes' times."""

    def __init__(self, limit: timedelta, output: int, pids: Callable[[], Iterable[int]]) -> None:
        self._limit = limit.total_seconds()
        self._every = max(self._limit / _LOOKS, _SHORTEST)
        self._output = output
        self._pids = pids
        self._active_at = self._looked_at = time.monotonic()
        self._size, self._ticks = self._measure()

    @property
    def next_look(self) -> float:
        """Seconds until it is worth looking again."""
        return max(0.0, self._looked_at + self._every - time.monotonic())

    @property
    def is_stalled(self) -> bool:
        """Whether nothing had happened for half of what is allowed when we last looked."""
        return self._looked_at - self._active_at >= self._limit / 2

    def is_over(self) -> bool:
        """Look, if it is time; True once nothing has happened for as long as is allowed."""
        now = time.monotonic()
        if now < self._looked_at + self._every:
            return False
        size, ticks = self._measure()
        worked = (ticks - self._ticks) / _TICKS_PER_S
        if size != self._size or worked >= max(_WORKING * (now - self._looked_at), 1 / _TICKS_PER_S):
            self._active_at = now
        self._looked_at, self._size, self._ticks = now, size, ticks
        return now - self._active_at >= self._limit

    def _measure(self) -> tuple[int, int]:
        found = (stat_fields(pid) for pid in self._pids())
        return os.fstat(self._output).st_size, sum(int(tick) for fields in found if fields for tick in fields[_TIMES])

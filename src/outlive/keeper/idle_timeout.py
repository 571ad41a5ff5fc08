"""The idle timeout of a task: no output, and almost no use of the processor.

A compiler that prints nothing is not idle. A waiting server is idle, although a timer wakes it now and then. So a task
is active if it writes output or uses at least one hundredth of a processor. The keeper checks this eight times per
timeout.
"""

from __future__ import annotations

import os
import time

from outlive.linux.processes import stat_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import timedelta

_LOOKS = 8
_SHORTEST = 0.02
_WORKING = 0.01
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_TIMES = slice(11, 15)  # utime and stime of the process, then those of the children that it has reaped


class IdleTimeout:
    """The checks of a task's output and processor time."""

    def __init__(self, limit: timedelta, output: int, pids: Callable[[], Iterable[int]]) -> None:
        self._limit = limit.total_seconds()
        self._every = max(self._limit / _LOOKS, _SHORTEST)
        self._output = output
        self._pids = pids
        self._active_at = self._looked_at = time.monotonic()
        self._size, self._ticks = self._measure()

    @property
    def next_look(self) -> float:
        """Seconds until the next check is due."""
        return max(0.0, self._looked_at + self._every - time.monotonic())

    @property
    def is_stalled(self) -> bool:
        """Whether the task had used up half of its idle timeout at the last check."""
        return self._looked_at - self._active_at >= self._limit / 2

    def is_over(self) -> bool:
        """Return whether the task has been idle for too long.

        The task is checked only if a check is due. Otherwise this function returns False.
        """
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

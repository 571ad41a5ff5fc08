"""Watching the output grow, at no cost while it does not.

The kernel tells us once (`F_NOTIFY`, which has no per-user limit) that something in the attempt's
directory was written; then we look at the size, and again until it rests, and ask to be told
anew. A task that prints nothing for an hour wakes nobody for an hour.
"""

from __future__ import annotations

import fcntl
import os

from outlive.bundle.kernel import signal
from outlive.bundle.output import Hole, enforce_cap
from outlive.bundle.record import clear_slot, read_slot
from outlive.domain.settlement import OutputSize

_FAST, _SLOW = 0.05, 0.25
_FAST_GROWTH = 1 << 20


class OutputWatch:
    """The output of one attempt: capped, and checked for a command that truncates it."""

    def __init__(self, directory: str, output: int, record_fd: int, cap: int, *, can_punch: bool) -> None:
        self._path = directory
        self._output = output
        self._record = record_fd
        self._cap = cap
        self._can_punch = can_punch
        recorded = read_slot(record_fd, "hole")
        self._hole = Hole(start=int(recorded["start"]), end=int(recorded["end"])) if recorded else Hole()
        self._seen = 0
        self._truncated = False
        self.over_limit = False
        self.wake: int | None = None
        self.next_look: float | None = None

    def begin(self) -> None:
        """Watch from now on, if we do not already. What ends before anybody could look needs no watch."""
        if self.wake is not None:
            return
        self._directory = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.wake, wake_write = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGIO, lambda *_: None)
        self.next_look = None if self._arm() else _SLOW

    def _arm(self) -> bool:
        """Ask to be told of the next write; False on kernels that cannot."""
        try:
            fcntl.fcntl(self._directory, fcntl.F_NOTIFY, fcntl.DN_MODIFY)
        except OSError:
            return False
        return True

    def notice_write(self) -> None:
        """The kernel told us of a write: look soon."""
        try:
            os.read(self.wake or 0, 4096)
        except BlockingIOError:
            pass
        self.next_look = _FAST

    def look(self) -> None:
        """Compare the size with the cap, and decide when to look again."""
        size = os.fstat(self._output).st_size
        grown = size - self._seen
        self._check(size)
        if grown or not self._arm():
            self.next_look = _FAST if grown > _FAST_GROWTH else _SLOW
        else:
            # Armed before this last look, a write in between would have been told of already.
            self.next_look = None if os.fstat(self._output).st_size == size else _FAST

    def _check(self, size: int) -> None:
        if size < self._seen or os.lseek(self._output, 0, os.SEEK_CUR) > size:
            self._truncated = True
            if self._hole.end > size:
                self._hole = Hole()
                clear_slot(self._record, "hole")
        self._seen = size
        if size <= self._cap:
            return
        if self._can_punch:
            self._hole = enforce_cap(self._output, self._record, self._cap, self._hole)
        else:
            self.over_limit = True

    def final(self) -> OutputSize:
        """The size at the end, with the cap enforced once more."""
        try:
            size = os.fstat(self._output).st_size
            self._check(size)
        except OSError:
            return OutputSize(written=None, dropped=self._hole.end - self._hole.start, truncated=self._truncated)
        return OutputSize(written=size, dropped=self._hole.end - self._hole.start, truncated=self._truncated)

"""The size limit of a running command's output, enforced without polling.

The kernel sends one signal at the next write in the attempt's directory (`F_NOTIFY`, which has no per-user limit). Then
the keeper checks the size repeatedly, until the size stays the same, and requests the next signal. So a silent task
does not wake the keeper.
"""

from __future__ import annotations

import fcntl
import os

from outlive.bundle.output import Hole, enforce_cap
from outlive.bundle.record import clear_slot, read_slot
from outlive.domain.tasks.settlement import OutputSize
from outlive.linux.syscalls import signal

_FAST, _SLOW = 0.05, 0.25
_FAST_GROWTH = 1 << 20


class OutputCap:
    """The check of an attempt's output for its size limit, and for truncation."""

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
        """Begin to watch the output. A command that ends at once needs no watch."""
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
        """Request a signal at the next write. Return False if the kernel cannot send it."""
        try:
            fcntl.fcntl(self._directory, fcntl.F_NOTIFY, fcntl.DN_MODIFY)
        except OSError:
            return False
        return True

    def notice_write(self) -> None:
        """Schedule a check soon, because the kernel reported a write."""
        try:
            os.read(self.wake or 0, 4096)
        except BlockingIOError:
            pass
        self.next_look = _FAST

    def look(self) -> None:
        """Compare the output's size with its limit, and decide when to check again."""
        before = self._seen
        size = self._check()
        grown = size - before
        if grown or not self._arm():
            self.next_look = _FAST if grown > _FAST_GROWTH else _SLOW
        else:
            # The signal was requested before this last check. So a later write is either seen here, or causes a signal.
            self.next_look = None if os.fstat(self._output).st_size == size else _FAST

    def _check(self) -> int:
        """Keep the output below its size limit, and return the size.

        Also notices whether the command has truncated the output.
        """
        # Read the write position before the size. In the other order, a command that prints between the two reads
        # would move the position beyond the size, as after a truncation.
        position = os.lseek(self._output, 0, os.SEEK_CUR)
        size = os.fstat(self._output).st_size
        if size < self._seen or position > size:
            self._truncated = True
            if self._hole.end > size:
                self._hole = Hole()
                clear_slot(self._record, "hole")
        self._seen = size
        if size > self._cap and self._can_punch:
            self._hole = enforce_cap(self._output, self._record, self._cap, self._hole)
        elif size > self._cap:
            self.over_limit = True
        return size

    def final(self) -> OutputSize:
        """Apply the size limit a last time, and return the final size of the output."""
        try:
            size = self._check()
        except OSError:
            return OutputSize(written=None, dropped=self._hole.end - self._hole.start, truncated=self._truncated)
        return OutputSize(written=size, dropped=self._hole.end - self._hole.start, truncated=self._truncated)

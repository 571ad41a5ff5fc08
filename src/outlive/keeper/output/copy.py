"""The copy of the output of a process that Outlive did not start.

The file to which the process writes is not changed.
"""

from __future__ import annotations

import os

from outlive.bundle import record
from outlive.linux.syscalls import drain, watch_modifications

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.attempt import HeldFiles

_PIECE = 1 << 20


class OutputCopy:
    """The file that is copied, and the offset up to which it was copied."""

    def __init__(self, held: HeldFiles) -> None:
        process = record.read_slot(held.record, "process") or {}
        self._output = held.output
        self._next = int(process.get("skipped", 0)) + os.fstat(held.output).st_size
        self._source: int | None = None
        self.wake: int | None = None
        """A descriptor that is readable when the copied file has grown.

        None if the file cannot be watched. Then the file is copied when the process has ended.
        """
        try:
            # Open the file through /proc, because it may have been renamed or deleted.
            path = f"/proc/{process['pid']}/fd/{process['source']}"
            self._source = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            self.wake = watch_modifications(f"/proc/self/fd/{self._source}")
        except (OSError, KeyError):
            pass

    def copy(self) -> None:
        """Copy the output that was written since the last call."""
        if self.wake is not None:
            drain(self.wake)
        if self._source is None:
            return
        if os.fstat(self._source).st_size < self._next:
            self._next = 0  # the file was truncated, so all of its present content is new
        while piece := os.pread(self._source, _PIECE, self._next):
            os.write(self._output, piece)
            self._next += len(piece)

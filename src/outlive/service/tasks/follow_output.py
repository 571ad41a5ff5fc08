"""Following the output of an attempt until the attempt ends.

Every byte is read once. Between reads, the process sleeps until the kernel reports that the output has grown.
"""

from __future__ import annotations

import os
import time
from select import POLLIN, poll

from outlive.bundle.attempt import has_writer, open_done
from outlive.bundle.output import Piece, read_piece, size_of
from outlive.code_copy import carry_in_own_process
from outlive.linux.reader_gone import has_departed, wait_for_departure
from outlive.linux.syscalls import drain, watch_modifications
from outlive.service.tasks.read import find
from outlive.service.tasks.wait import DAY_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta
    from typing import Self

    from outlive.bundle.attempt import AttemptFiles
    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Task
    from outlive.service.maintenance.reconcile import Adopter

CHUNK = 1 << 16
# The interval in milliseconds between two reads if the user has no inotify instance left.
_LOOK_EVERY_MS = 100
_SETTLING_PAUSE = 0.002


def follow(
    home: Home,
    task: Task,
    files: AttemptFiles,
    start: int,
    *,
    timeout: timedelta | None = None,
    adopter: Adopter | None,
    departures: int | None = None,
) -> Iterator[Piece]:
    """Yield pieces of output from `start` on, until the attempt ends or time runs out.

    After all output written so far, an empty piece is yielded, so that the caller can do other work. This function
    also returns when the descriptor `departures` becomes readable, because the reader has gone away.
    """
    until = None if timeout is None else time.monotonic() + timeout.total_seconds()
    carry_in_own_process(home.path)
    with OutputWatch(files, departures) as watch:
        while True:
            # Check for the end of the attempt before reading the output, so that all bytes written before the end are
            # read.
            ended = not watch.is_held() and _has_settled(home, task, files.number, adopter)
            if size_of(files) < start:
                # The command truncated its own output: new output begins at offset 0.
                start = 0
                yield Piece(start=0, content=b"", restarted=True)
            while (piece := read_piece(files, start, CHUNK)).content:
                start = piece.end
                yield piece
                if until is not None and time.monotonic() >= until:
                    return
            if ended or (until is not None and time.monotonic() >= until) or has_departed(departures):
                return
            yield piece
            watch.wait(until)


def _has_settled(home: Home, task: Task, attempt: int, adopter: Adopter | None) -> bool:
    return find(home, [task.id], adopter)[0].attempts[attempt - 1].settled_at is not None


class OutputWatch:
    """A wait for more output, for the attempt's end, or for the reader to go away."""

    def __init__(self, files: AttemptFiles, departures: int | None = None) -> None:
        self._departures = departures
        self._done = open_done(files)
        # This is None if the file cannot be watched.
        self._growth = watch_modifications(files.output)
        self.fds = tuple(fd for fd in (self._done, self._growth) if fd is not None)
        """The descriptors that become readable when the output grows, or when the attempt has no keeper any more."""
        self._pause = _SETTLING_PAUSE
        self._poll = poll()
        for fd in (self._done, self._growth, departures):
            if fd is not None:
                self._poll.register(fd, POLLIN)

    def is_held(self) -> bool:
        """Return whether a keeper of the attempt is alive.

        While a keeper lives, it has a FIFO of the attempt (the done FIFO) open for writing.
        """
        return has_writer(self._done)

    def wait(self, until: float | None) -> None:
        """Sleep until there may be new output."""
        left = None if until is None else max(0.0, until - time.monotonic()) * 1000
        if not self.is_held():
            # The attempt has no keeper now. Either a keeper has exited before the attempt is settled, or a keeper that
            # adopts the attempt has not opened the FIFO yet.
            wait_for_departure(self._departures, self._pause)
            self._pause = min(self._pause * 2, 1.0)
        elif self._growth is None:
            self._poll.poll(_LOOK_EVERY_MS if left is None else min(left, _LOOK_EVERY_MS))
        else:
            self._poll.poll(left if left is None else min(left, DAY_MS))
            drain(self._growth)

    def has_grown(self) -> bool:
        """Return whether the output has grown since the last call."""
        return self._growth is not None and drain(self._growth)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in self.fds:
            os.close(fd)

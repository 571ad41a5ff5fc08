"""Following an output while it grows: every byte once, woken by the kernel, to the very end."""

from __future__ import annotations

import os
import time
from select import POLLIN, poll

from outlive.bundle.attempt import has_writer, open_done
from outlive.bundle.kernel import drain, watch_modifications
from outlive.bundle.output import Piece, read_piece, size_of
from outlive.service.view import find
from outlive.service.wait import DAY_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta
    from typing import Self

    from outlive.bundle.attempt import AttemptFiles
    from outlive.bundle.home import Home
    from outlive.domain.task import Task
    from outlive.service.reconcile import Adopter

CHUNK = 1 << 16
# Only where the user has no inotify instance left: then we look instead of being told.
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
) -> Iterator[Piece]:
    """Pieces of output from `start` on, until the attempt has ended or the time is up.

    A piece may be empty: then nothing is new, and the caller may look at something else.
    """
    until = None if timeout is None else time.monotonic() + timeout.total_seconds()
    with _Watch(files) as watch:
        while True:
            # The end is asked for before the bytes are read: what was written until then is there.
            ended = not watch.is_held() and _has_settled(home, task, files.number, adopter)
            if size_of(files) < start:
                # The command truncated its own output: what comes now stands at the beginning.
                start = 0
                yield Piece(start=0, content=b"", restarted=True)
            while (piece := read_piece(files, start, CHUNK)).content:
                start = piece.end
                yield piece
                if until is not None and time.monotonic() >= until:
                    return
            if ended or (until is not None and time.monotonic() >= until):
                return
            yield piece
            watch.wait(until)


def _has_settled(home: Home, task: Task, attempt: int, adopter: Adopter | None) -> bool:
    return find(home, [task.id], adopter)[0].attempts[attempt - 1].settled_at is not None


class _Watch:
    """Wakes when the output grows or the last holder of the attempt lets go."""

    def __init__(self, files: AttemptFiles) -> None:
        self._done = open_done(files)
        self._growth = watch_modifications(files.output)
        self._pause = _SETTLING_PAUSE
        self._poll = poll()
        for fd in (self._done, self._growth):
            if fd is not None:
                self._poll.register(fd, POLLIN)

    def is_held(self) -> bool:
        """Whether somebody can still add to the output."""
        return has_writer(self._done)

    def wait(self, until: float | None) -> None:
        """Sleep until there may be something new."""
        left = None if until is None else max(0.0, until - time.monotonic()) * 1000
        if not self.is_held():
            # Somebody is between letting go and settling, or between adopting and keeping.
            time.sleep(self._pause)
            self._pause = min(self._pause * 2, 1.0)
        elif self._growth is None:
            self._poll.poll(_LOOK_EVERY_MS if left is None else min(left, _LOOK_EVERY_MS))
        else:
            self._poll.poll(left if left is None else min(left, DAY_MS))
            drain(self._growth)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in (self._done, self._growth):
            if fd is not None:
                os.close(fd)

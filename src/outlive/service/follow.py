"""Following an output while it grows: every byte once, woken by the kernel, to the very end."""

from __future__ import annotations

import os
import time
from select import POLLIN, poll

from outlive.bundle.attempt import has_writer, open_done
from outlive.bundle.kernel import watch_modifications
from outlive.bundle.output import read_piece
from outlive.service.view import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta

    from outlive.bundle.attempt import AttemptFiles
    from outlive.bundle.home import Home
    from outlive.bundle.output import Piece
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
    watch, done = _watch(files.output), open_done(files)
    waiting = poll()
    for fd in (watch, done):
        if fd is not None:
            waiting.register(fd, POLLIN)
    try:
        ended = False
        while True:
            # The end is asked for before the bytes are read: what was written until then is there.
            if not ended and not has_writer(done):
                ended = find(home, [task.id], adopter)[0].attempts[files.number - 1].settled_at is not None
                if not ended:
                    time.sleep(_SETTLING_PAUSE)
                    continue
            while (piece := read_piece(files, start, CHUNK)).content:
                start = piece.end
                yield piece
            if ended or (until is not None and time.monotonic() >= until):
                return
            left = None if until is None else max(0.0, until - time.monotonic()) * 1000
            waiting.poll(left if watch is not None else min(left or _LOOK_EVERY_MS, _LOOK_EVERY_MS))
            if watch is not None:
                _drain(watch)
            yield piece
    finally:
        for fd in (watch, done):
            if fd is not None:
                os.close(fd)


def _watch(path: str) -> int | None:
    try:
        return watch_modifications(path)
    except OSError:
        return None


def _drain(watch: int) -> None:
    try:
        os.read(watch, 1 << 14)
    except BlockingIOError:
        pass

"""A client that compresses by itself, seen where it writes its conversation down: no event of it says so."""

from __future__ import annotations

import os

from outlive.hooks import marks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.hooks.event import Event

_MOST_BYTES = 16 << 20


def has_compressed(home: Home, event: Event) -> bool:
    """Whether the history was replaced by a summary since this was asked last in the same session."""
    mark = event.summary_mark
    if event.kind not in ("prompt", "results") or not event.transcript:
        return False
    try:
        fd = os.open(event.transcript, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        size, before = os.fstat(fd).st_size, marks.word(home, event.session, "read")
        # What was read ended with a newline, unless something was just being written; look there once more.
        begin = max(int(before) - len(mark), size - _MOST_BYTES, 0) if before.isdigit() else size
        found = mark in os.pread(fd, size - begin, begin)
    except OSError:
        return False
    finally:
        os.close(fd)
    if not found and str(size) != before:
        marks.set_count(home, event.session, "read", size)
    return found


def has_been_told(home: Home, event: Event) -> None:
    """What the transcript shows until now has been answered with a hand-off."""
    if event.transcript and os.path.isfile(event.transcript):
        marks.set_count(home, event.session, "read", os.path.getsize(event.transcript))

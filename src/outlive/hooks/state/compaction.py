"""A check of the transcript for summaries that the client does not report.

When a session's history becomes too long, the client replaces it by a summary.
"""

from __future__ import annotations

import os

from outlive.hooks.state import session_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.hooks.event import Event

_MOST_BYTES = 16 << 20


def has_compressed(home: Home, event: Event) -> bool:
    """Return whether the client has summarized the history since the last check."""
    mark = event.summary_mark
    if event.kind not in ("prompt", "results") or not event.transcript:
        return False
    try:
        fd = os.open(event.transcript, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        size, before = os.fstat(fd).st_size, session_files.word(home, event.session, "read")
        # At the last check, the client may have been writing the line that marks a summary. So begin a little before
        # the end of the part that was read then.
        begin = max(int(before) - len(mark), size - _MOST_BYTES, 0) if before.isdigit() else size
        found = mark in os.pread(fd, size - begin, begin)
    except OSError:
        return False
    finally:
        os.close(fd)
    if not found and str(size) != before:
        session_files.set_count(home, event.session, "read", size)
    return found


def remember_answered(home: Home, event: Event) -> None:
    """Remember that a hand-off was given after the newest summary in the transcript."""
    if event.transcript and os.path.isfile(event.transcript):
        session_files.set_count(home, event.session, "read", os.path.getsize(event.transcript))

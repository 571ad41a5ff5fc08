"""The check of a transcript for notices: a notice whose id is in it was received.

If a session was killed during a turn, it may have read notices without confirming them. Without this check, they would
be presented again.
"""

from __future__ import annotations

import os

from outlive.bundle.trace import trace
from outlive.ledger.notices import Notices
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.notices.inbox import owed_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.hooks.event import Event

# Only the end of the transcript is read. The newest notices are there, and the session waits for this hook.
_LAST_BYTES = 4 << 20
_MOST_NOTICES = 200


def confirm_from_transcript(home: Home, event: Event, project: str) -> None:
    """Acknowledge the presented notices whose ids are in the session's transcript."""
    if event.transcript is None and event.kept is None:
        return
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        owed = owed_to(ledger, event.session, project)
        if owed is None:
            return
        presented = Notices(ledger).presented_to(owed.session.seq, _MOST_NOTICES)
        if not presented:
            return
        text = _last_bytes(event.transcript) if event.transcript else (event.kept or "").encode()
        seen = [notice for notice in presented if notice.id.encode("ascii") in text]
        for name in Notices(ledger).acknowledge(seen, utc_now()):
            trace(home, event.session, "acknowledged", notice=name, by="the transcript")


def _last_bytes(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        size = os.fstat(fd).st_size
        return os.pread(fd, _LAST_BYTES, max(0, size - _LAST_BYTES))
    except OSError:
        return b""
    finally:
        os.close(fd)

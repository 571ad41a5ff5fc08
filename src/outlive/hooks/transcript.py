"""The transcript as evidence: a notice whose id the client has written down has been received.

A session that was killed in the middle of a turn has read more than its next turn could confirm.
"""

from __future__ import annotations

import os

from outlive.bundle.trace import trace
from outlive.ledger.inbox import Inbox
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.inbox import owed_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.hooks.event import Event

# What was presented last is near the end, and a session begins while somebody waits.
_LAST_BYTES = 4 << 20


def confirm_from_transcript(home: Home, event: Event, project: str) -> None:
    """Acknowledge what was presented to this session and stands in its transcript."""
    if event.transcript is None and event.kept is None:
        return
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        owed = owed_to(ledger, event.session, project)
        if owed is None:
            return
        presented = [
            notice
            for notice in Inbox(ledger).owed((owed.session.seq,))
            if notice.state == "presented" and notice.presented_to == owed.session.seq
        ]
        if not presented:
            return
        text = _last_bytes(event.transcript) if event.transcript else (event.kept or "").encode()
        seen = [notice for notice in presented if notice.id.encode("ascii") in text]
        for name in Inbox(ledger).acknowledge(seen, utc_now()):
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

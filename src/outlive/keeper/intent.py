"""The reason for ending an attempt, recorded before the first signal to it."""

from __future__ import annotations

from outlive.bundle import record
from outlive.domain.tasks.evidence import INTENTS, Intent
from outlive.domain.timestamps import from_micros, to_micros

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from outlive.domain.tasks.evidence import IntentKind


def read_intent(record_fd: int) -> Intent | None:
    """Return the recorded reason for ending this attempt, or None if none is recorded."""
    slot = record.read_slot(record_fd, "intent")
    kind = next((known for known in INTENTS if slot and slot["kind"] == known), None)
    return None if slot is None or kind is None else Intent(kind=kind, at=from_micros(int(slot["at"])))


def write_intent(record_fd: int, kind: IntentKind, now: datetime) -> None:
    """Record why the keeper is about to end the task's processes."""
    try:
        record.write_slot(record_fd, "intent", kind=kind, at=to_micros(now))
    except OSError:
        pass  # the processes are ended even without this record, but then only the signal may be reported as the reason

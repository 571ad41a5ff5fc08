"""The sinks (receivers that the user configured) and the deliveries to them."""

from __future__ import annotations

from outlive.domain.tasks.sink_config import MOST_TRIES, Delivery, Sink
from outlive.domain.timestamps import to_micros
from outlive.ledger import rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from outlive.domain.tasks.sink_config import Outcome
    from outlive.ledger.connection import LedgerFile

_PENDING = "SELECT notice, sink, state, tries, last_error FROM delivery WHERE state = 'pending'"
_ADD = """
    INSERT INTO sink (name, kind, target, secret, policy, project, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (name) DO NOTHING"""
_RECORD = """
    UPDATE delivery SET tries = tries + ?1, last_error = ?2, at = ?3,
        state = CASE WHEN ?4 = 'delivered' THEN 'delivered' WHEN tries + ?1 >= ?5 THEN 'failed' ELSE 'pending' END
    WHERE notice = ?6 AND sink = ?7"""


class Sinks:
    """The part of the ledger that records sinks and deliveries.

    A sink is a receiver of notices that the user configured.
    """

    def __init__(self, ledger: LedgerFile) -> None:
        self._ledger = ledger

    def add(self, sink: Sink, now: datetime) -> bool:
        """Record a receiver of notices that the user configured.

        Returns False if another receiver has the same name.
        """
        cells = (
            sink.name,
            sink.kind,
            rows.text(sink.target),
            rows.text(sink.secret),
            sink.policy,
            rows.text(sink.project),
            to_micros(now),
        )
        with self._ledger.write():
            self._ledger.db.execute(_ADD, cells)
            return self._ledger.db.changes() == 1

    def remove(self, name: str) -> bool:
        """Delete a receiver of notices and the deliveries to it.

        Returns False if no receiver has this name.
        """
        with self._ledger.write():
            self._ledger.db.execute("DELETE FROM sink WHERE name = ?", (name,))
            return self._ledger.db.changes() == 1

    def all(self) -> list[Sink]:
        """Return every receiver of notices, in the order of their names."""
        found = self._ledger.select("SELECT name, kind, target, secret, policy, project FROM sink ORDER BY name")
        return [
            Sink(
                name=name,
                kind=kind,
                target=rows.from_text(target),
                secret=rows.optional(secret),
                policy=policy,
                project=rows.optional(project),
            )
            for name, kind, target, secret, policy, project in found
        ]

    def pending(self) -> list[Delivery]:
        """Return the deliveries that are not done yet, in the order of their notices."""
        query = f"{_PENDING} ORDER BY (SELECT seq FROM notice WHERE notice.id = delivery.notice)"
        return [
            Delivery(notice=notice, sink=sink, state=state, tries=tries, last_error=error)
            for notice, sink, state, tries, error in self._ledger.select(query)
        ]

    def record(self, deliveries: Sequence[Delivery], outcome: Outcome, error: str | None, now: datetime) -> None:
        """Record the outcome of deliveries to a receiver of notices.

        A delivery with the outcome `busy` does not count as a try.
        """
        counts = 0 if outcome == "busy" else 1
        with self._ledger.write():
            for each in deliveries:
                cells = (counts, rows.sentence(error), to_micros(now), outcome, MOST_TRIES, each.notice, each.sink)
                self._ledger.db.execute(_RECORD, cells)

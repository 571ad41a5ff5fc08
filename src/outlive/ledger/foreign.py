"""Foreign tasks in the ledger: the last word of each client on what it runs itself."""

from __future__ import annotations

from outlive.domain.foreign import Foreign, Seen
from outlive.domain.when import from_micros, to_micros
from outlive.ledger import rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from outlive.ledger.sqlite import SqliteLedger

_NOTE = """
    INSERT INTO foreign_task (origin, client, id, command, description, output, seen_at, process)
    SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, process FROM session WHERE seq = ?1
    ON CONFLICT (origin, id) DO UPDATE SET seen_at = excluded.seen_at, state = 'running', absent = NULL,
        process = excluded.process,
        command = excluded.command, description = coalesce(excluded.description, description),
        output = coalesce(excluded.output, output)"""
_OPEN = """
    SELECT seq, client, id, command, description, output, process, seen_at, absent FROM foreign_task
    WHERE origin = ? AND state = 'running' ORDER BY seq"""


class ForeignTasks:
    """The part of the ledger that knows of them."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self._ledger = ledger

    def note(self, origin: int, client: str, seen: Seen, now: datetime) -> None:
        """The client of a session says that this runs."""
        cells = (
            origin,
            client,
            rows.text(seen.id),
            rows.text(seen.command),
            rows.text(seen.description),
            rows.text(seen.output),
            to_micros(now),
        )
        with self._ledger.write():
            self._ledger.db.execute(_NOTE, cells)

    def running(self, origin: int) -> list[Foreign]:
        """Those of a session that nobody said to have ended."""
        found = self._ledger.select(_OPEN, (origin,))
        return [
            Foreign(
                seq=seq,
                client=client,
                seen=Seen(
                    id=rows.from_text(id_),
                    command=rows.from_text(command),
                    description=rows.optional(description),
                    output=rows.optional(output),
                ),
                process=process,
                seen_at=from_micros(at),
                absent_since=absent,
            )
            for seq, client, id_, command, description, output, process, at, absent in found
        ]

    def close(self, ones: Sequence[Foreign], state: str) -> None:
        """They have `ended`, as their client says, or are `lost`, and need not be looked for again."""
        with self._ledger.write():
            for one in ones:
                self._ledger.db.execute("UPDATE foreign_task SET state = ? WHERE seq = ?", (state, one.seq))

    def set_absent(self, one: Foreign, since: str | None) -> None:
        """Write down since when it has been out of sight; None if it is in sight."""
        with self._ledger.write():
            self._ledger.db.execute("UPDATE foreign_task SET absent = ? WHERE seq = ?", (since, one.seq))

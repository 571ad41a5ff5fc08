"""What sessions changed themselves, in the ledger."""

from __future__ import annotations

from outlive.domain.overlap import Edit
from outlive.domain.when import from_micros, to_micros
from outlive.ledger import rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from outlive.ledger.sqlite import SqliteLedger

_NOTE = "INSERT INTO edit (origin, project, path, at) VALUES (?, ?, ?, ?)"
_BETWEEN = """
    SELECT session.id, edit.path, edit.at FROM edit JOIN session ON session.seq = edit.origin
    WHERE edit.at BETWEEN ? AND ? ORDER BY edit.at LIMIT ?"""
_MOST = 10_000


class Edits:
    """The part of the ledger that knows of edits."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self._ledger = ledger

    def note(self, origin: int, project: str, paths: Sequence[str], now: datetime) -> None:
        """A session has changed these."""
        with self._ledger.write():
            for path in paths:
                self._ledger.db.execute(_NOTE, (origin, rows.text(project), rows.text(path), to_micros(now)))

    def between(self, since: datetime, until: datetime) -> list[Edit]:
        """What sessions changed in a span of time, the first of them if they are very many.

        Wherever they work: a task of a submodule is in the way of who edits from the repository around it.
        """
        span = (to_micros(since), to_micros(until), _MOST)
        return [
            Edit(session=rows.from_text(session), path=rows.from_text(path), at=from_micros(at))
            for session, path, at in self._ledger.select(_BETWEEN, span)
        ]

    def forget(self, before: datetime) -> None:
        """Nobody asks any more for what lies so far back."""
        with self._ledger.write():
            self._ledger.db.execute("DELETE FROM edit WHERE at < ?", (to_micros(before),))

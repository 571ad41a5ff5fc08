"""The ledger's records of files that sessions changed themselves."""

from __future__ import annotations

from outlive.domain.effects.overlap import Edit
from outlive.domain.timestamps import from_micros, to_micros
from outlive.ledger import rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from outlive.ledger.sqlite import SqliteLedger

_NOTE = "INSERT INTO edit (origin, project, path, at) VALUES (?, ?, ?, ?)"
_BETWEEN = """
    SELECT session.id, edit.path, edit.at FROM edit JOIN session ON session.seq = edit.origin
    WHERE edit.at BETWEEN ? AND ? ORDER BY edit.at LIMIT ?"""
# Every ended attempt has a notice. So this query finds the time of the newest end without a search through all
# attempts.
_LAST_ENDED = "SELECT created_at FROM notice WHERE kind IN ('ended', 'lost', 'retrying') ORDER BY seq DESC LIMIT 1"
_MOST = 10_000


class SessionEdits:
    """The part of the ledger that records the files that sessions edited."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self._ledger = ledger

    def note(self, origin: int, project: str, edits: Iterable[tuple[str, datetime]]) -> None:
        """Record the files that a session has changed, each with its time.

        `origin` is the number of the session.
        """
        with self._ledger.write():
            for path, at in edits:
                self._ledger.db.execute(_NOTE, (origin, rows.text(project), rows.text(path), to_micros(at)))

    def may_matter(self, since: datetime) -> bool:
        """Return whether a task has run since a given time.

        If no task has run since that time, files that a session edits cannot overlap with the changes of a task.
        """
        ended = self._ledger.select(_LAST_ENDED)
        return bool(self._ledger.unsettled()) or any(at >= to_micros(since) for (at,) in ended)

    def between(self, since: datetime, until: datetime) -> list[Edit]:
        """Return the sessions' edits in a span of time, at most the first 10,000.

        An edit is a change that the session itself made to a file. Edits in all projects count, because a task in a
        submodule may overlap with edits that a session made from the repository around the submodule.
        """
        span = (to_micros(since), to_micros(until), _MOST)
        return [
            Edit(session=rows.from_text(session), path=rows.from_text(path), at=from_micros(at))
            for session, path, at in self._ledger.select(_BETWEEN, span)
        ]

    def forget(self, before: datetime) -> None:
        """Delete the records of edits from before a given time."""
        with self._ledger.write():
            self._ledger.db.execute("DELETE FROM edit WHERE at < ?", (to_micros(before),))

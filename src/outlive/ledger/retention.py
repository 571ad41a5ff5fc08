"""What may be deleted: ended, told, past its date - or the oldest of those told, if there is too much.

Nothing that runs or waits is ever named here, nothing that a session still has to be told, and
nothing that somebody in line depends on.
"""

from __future__ import annotations

from outlive.domain.notice import MOST_PRESENTATIONS
from outlive.domain.value import Value
from outlive.domain.when import from_micros, to_micros

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from outlive.ledger.sqlite import SqliteLedger

# An ending without a session is owed to nobody, nor is one that was presented as often as may be.
_OWED = f"state IN ('pending', 'claimed', 'presented') AND session IS NOT NULL AND tries < {MOST_PRESENTATIONS}"
_MAY_GO = f"""
    newest.settled_at IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM notice WHERE notice.task = task.id AND {_OWED})
    AND NOT EXISTS (
        SELECT 1 FROM delivery JOIN notice ON notice.id = delivery.notice
        WHERE notice.task = task.id AND delivery.state = 'pending')
    AND NOT EXISTS (
        SELECT 1 FROM attempt waiting INDEXED BY attempt_unsettled JOIN task later ON later.id = waiting.task,
            json_each(later.after)
        WHERE waiting.state IN ('queued', 'running') AND json_extract(value, '$[0]') = task.id)"""
_BYTES = """
    (SELECT coalesce(sum(output_bytes - coalesce(output_dropped, 0)), 0) FROM attempt WHERE attempt.task = task.id)"""
_DUE = f"""
    SELECT task.id, task.command, task.session, newest.delete_after, {_BYTES}
    FROM attempt newest JOIN task ON task.id = newest.task AND newest.number = task.attempt
    WHERE newest.delete_after <= ? AND newest.settled_at <= ? AND {_MAY_GO} ORDER BY newest.delete_after LIMIT ?"""
_OLDEST = f"""
    SELECT task.id, task.command, task.session, newest.delete_after, {_BYTES} AS bytes
    FROM task JOIN attempt newest ON task.id = newest.task AND newest.number = task.attempt
    WHERE newest.settled_at <= ? AND {_MAY_GO} AND bytes > 0 ORDER BY task.seq LIMIT ?"""
_KEPT = """
    SELECT coalesce(sum(output_bytes - coalesce(output_dropped, 0)), 0) FROM attempt WHERE delete_after IS NOT NULL"""
_DELETE = f"""
    DELETE FROM task WHERE id = ? AND EXISTS
    (SELECT 1 FROM attempt newest WHERE newest.task = task.id AND newest.number = task.attempt AND {_MAY_GO})"""


class Deletable(Value):
    """An ended task whose record may go, and what its output takes."""

    task: str
    command: str
    session: str | None = None
    delete_after: datetime
    size: int


class Retention:
    """The part of the ledger that forgets."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self._ledger = ledger

    def last_but_one_launch(self, now: datetime) -> datetime:
        """When the ledger was written to before the task that was launched last; now, if there was none."""
        rows = self._ledger.select("SELECT created_at FROM task ORDER BY seq DESC LIMIT 1 OFFSET 1")
        return from_micros(rows[0][0]) if rows else now

    def due(self, now: datetime, settled_by: datetime, limit: int) -> list[Deletable]:
        """Tasks past their date, the longest first."""
        found = self._ledger.select(_DUE, (to_micros(now), to_micros(settled_by), limit))
        return [_deletable(row) for row in found]

    def kept_bytes(self) -> int:
        """How much output of ended attempts there is."""
        return int(self._ledger.select(_KEPT)[0][0])

    def oldest(self, settled_by: datetime, limit: int) -> list[Deletable]:
        """Tasks with output that may go before their date, if room is needed, the oldest first."""
        return [_deletable(row) for row in self._ledger.select(_OLDEST, (to_micros(settled_by), limit))]

    def delete(self, tasks: Sequence[str]) -> list[str]:
        """Forget those of the tasks that may still go; their bundles are no longer anybody's then."""
        gone = []
        with self._ledger.write():
            for task in tasks:
                self._ledger.db.execute(_DELETE, (task,))
                if self._ledger.db.changes():
                    gone.append(task)
        return gone


def _deletable(row: tuple[object, ...]) -> Deletable:
    task, command, session, delete_after, size = row
    return Deletable(
        task=str(task),
        command=_text(command),
        session=None if session is None else _text(session),
        delete_after=from_micros(int(str(delete_after))),
        size=int(str(size)),
    )


def _text(cell: object) -> str:
    return cell.decode("utf-8", "backslashreplace") if isinstance(cell, bytes) else str(cell)

"""The rules that say which ended tasks may be deleted.

A task may be deleted if it has ended, its notices need no more delivery, and its deletion date has passed. If the
output of all tasks is too large, the oldest tasks may be deleted earlier. A task is never deleted while a queued task
depends on it, or while one of its notices must still be delivered to a session.
"""

from __future__ import annotations

from outlive.domain.notices.notice import MOST_PRESENTATIONS
from outlive.domain.timestamps import from_micros, to_micros
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from outlive.ledger.sqlite import SqliteLedger

# A notice must still be delivered if it is not acknowledged, belongs to a session, and was not yet presented the
# maximum number of times.
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
    """An ended task whose record may be deleted, and the size of its output."""

    task: str
    command: str
    session: str | None = None
    delete_after: datetime
    size: int


class Retention:
    """The part of the ledger that finds and deletes old tasks."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self._ledger = ledger

    def last_but_one_launch(self, now: datetime) -> datetime:
        """Return the launch time of the second newest task, or `now` if there is none.

        The caller compares this time with `now`, to detect a clock that was set forward by mistake.
        """
        rows = self._ledger.select("SELECT created_at FROM task ORDER BY seq DESC LIMIT 1 OFFSET 1")
        return from_micros(rows[0][0]) if rows else now

    def due(self, now: datetime, settled_by: datetime, limit: int) -> list[Deletable]:
        """Return at most `limit` tasks past their deletion date, longest overdue first.

        Tasks that were settled after the time `settled_by` are left out.
        """
        found = self._ledger.select(_DUE, (to_micros(now), to_micros(settled_by), limit))
        return [_deletable(row) for row in found]

    def kept_bytes(self) -> int:
        """Return the size in bytes of the output of all ended attempts."""
        return int(self._ledger.select(_KEPT)[0][0])

    def oldest(self, settled_by: datetime, limit: int) -> list[Deletable]:
        """Return ended tasks that may be deleted before their date, oldest first.

        Only tasks with output are returned, at most `limit`. Tasks that were settled after the time `settled_by` are
        left out.
        """
        return [_deletable(row) for row in self._ledger.select(_OLDEST, (to_micros(settled_by), limit))]

    def delete(self, tasks: Sequence[str]) -> list[str]:
        """Delete the records of those tasks that may still be deleted. Return their ids.

        The files of the tasks are not deleted.
        """
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

"""The ledger's records of paths that ended tasks changed and did not restore."""

from __future__ import annotations

import os

from outlive.domain.effects.left_open import LeftPath
from outlive.domain.timestamps import to_micros
from outlive.domain.value import Value
from outlive.ledger.notices import OPEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from outlive.ledger import rows
    from outlive.ledger.sqlite import SqliteLedger

# Select the newest attempts of tasks that ended without success and whose notice was made since the first given time.
# For a notice that no session has acknowledged, the second given time applies instead. Only the newest notices are
# searched, so that the cost does not grow with the ledger.
_FAILED = f"""
    SELECT newest.task, newest.left_known,
        EXISTS (SELECT 1 FROM left_path WHERE left_path.task = newest.task)
    FROM (SELECT * FROM notice ORDER BY seq DESC LIMIT ?) notice
    JOIN task ON task.id = notice.task AND task.attempt = notice.attempt
    JOIN attempt newest ON newest.task = notice.task AND newest.number = notice.attempt
    WHERE notice.kind IN ('ended', 'lost') AND newest.state <> 'succeeded' AND (
        notice.created_at >= ? OR (notice.created_at >= ? AND notice.{OPEN} AND notice.origin > 0))
    ORDER BY notice.seq"""
MOST_ENDINGS = 300
_ALL_ARE_KNOWN = """
    UPDATE attempt SET left_known = 1 WHERE task = ?1 AND number = ?2 AND settled_at IS NOT NULL
    AND number = (SELECT task.attempt FROM task WHERE task.id = ?1)"""
# A path is recorded only for the task that changed it last.
_SUPERSEDE = "DELETE FROM left_path WHERE path = ? AND task <> ? AND opened_at < ?"
_COLUMNS = "path, name, scope, is_stash, opened_at, command, found, left, must_be_same, written"
_ADD = f"INSERT INTO left_path (task, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_FORGET = """
    DELETE FROM left_path WHERE task IN
    (SELECT task.id FROM task JOIN attempt newest ON newest.task = task.id AND newest.number = task.attempt
        WHERE newest.settled_at < ?)"""


class FailedTask(Value):
    """A task that recently ended without success."""

    task: str
    is_known: bool
    """Whether the ledger lists all paths that the task left changed."""
    has_left: bool
    """Whether the ledger lists at least one path that the task left changed."""


class LeftOpenPaths:
    """The part of the ledger that records the paths that ended tasks left changed."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self._ledger = ledger

    def record(self, task: str, attempt: int, paths: Sequence[LeftPath]) -> None:
        """Record all paths that an attempt left changed.

        Nothing is recorded if the task has a newer attempt.
        """
        with self._ledger.write():
            self._ledger.db.execute(_ALL_ARE_KNOWN, (task, attempt))
            if not self._ledger.db.changes():
                return
            self._ledger.db.execute("DELETE FROM left_path WHERE task = ?", (task,))
            cells = [(os.fsencode(each.path), task, each.opened_at) for each in paths]
            self._ledger.db.executemany(_SUPERSEDE, cells)
            self._ledger.db.executemany(_ADD, [(task, *_cells(each)) for each in paths])

    def failed(self, recent: datetime, untold: datetime) -> list[FailedTask]:
        """Return the tasks that ended without success since the time `recent`.

        For a task whose notice no session has acknowledged, the earlier time `untold` applies instead of `recent`.
        """
        found = self._ledger.select(_FAILED, (MOST_ENDINGS, to_micros(recent), to_micros(untold)))
        return [FailedTask(task=task, is_known=bool(known), has_left=bool(left)) for task, known, left in found]

    def at(self, paths: Iterable[str]) -> list[tuple[str, LeftPath]]:
        """Return the changes that ended tasks left at exactly these paths.

        Each change comes with its task.
        """
        cells = sorted({os.fsencode(path) for path in paths})
        marks = ", ".join("?" * len(cells))
        query = f"SELECT task, {_COLUMNS} FROM left_path WHERE path IN ({marks})"
        return [(row[0], _from(row[1:])) for row in self._ledger.select(query, tuple(cells))]

    def below(self, task: str, directory: str, after: str | None = None, limit: int | None = None) -> list[LeftPath]:
        """Return the sorted paths that a task left changed below a directory.

        `after` is a path. If it is given, only paths that sort after this path are returned. `limit` is the largest
        number of paths.
        """
        first = os.fsencode(directory.rstrip("/") + "/")
        query = f"SELECT {_COLUMNS} FROM left_path WHERE task = ? AND path > ? AND path < ? ORDER BY path LIMIT ?"
        begin = first if after is None else os.fsencode(after)
        found = self._ledger.select(query, (task, begin, first[:-1] + b"0", -1 if limit is None else limit))
        return [_from(row) for row in found]

    def tasks_below(self, tasks: Sequence[str], directory: str, *others: str) -> list[str]:
        """Return those tasks that changed paths below a directory without restoring them.

        A task is returned too if it changed one of the paths in `others` and did not restore this path. The result has
        the reverse order of `tasks`.
        """
        if not tasks:
            return []
        first = os.fsencode(directory.rstrip("/") + "/")
        values = ", ".join("(?, ?)" for _ in tasks)
        also = ", ".join("?" for _ in others)
        query = f"""
            WITH asked (task, place) AS (VALUES {values}) SELECT task FROM asked
            WHERE EXISTS (SELECT 1 FROM left_path WHERE left_path.task = asked.task AND path > ? AND path < ?)
            OR EXISTS (SELECT 1 FROM left_path WHERE left_path.task = asked.task AND path IN ({also}))
            ORDER BY place DESC"""
        cells = [cell for place, task in enumerate(tasks) for cell in (task, place)]
        found = self._ledger.select(query, (*cells, first, first[:-1] + b"0", *map(os.fsencode, others)))
        return [str(task) for (task,) in found]

    def count(self, task: str) -> int:
        """Return how many paths a task has changed and not restored."""
        return int(self._ledger.select("SELECT count(*) FROM left_path WHERE task = ?", (task,))[0][0])

    def names(self) -> list[bytes]:
        """Return every path that a task has changed and not restored, as bytes."""
        return [row[0] for row in self._ledger.select("SELECT DISTINCT path FROM left_path")]

    def restore(self, task: str, paths: Iterable[LeftPath]) -> None:
        """Delete the records of paths that have changed again since the task ended."""
        with self._ledger.write():
            cells = [(task, os.fsencode(each.path)) for each in paths]
            self._ledger.db.executemany("DELETE FROM left_path WHERE task = ? AND path = ?", cells)

    def forget(self, before: datetime) -> None:
        """Delete the records of changed paths of tasks that ended before a given time."""
        with self._ledger.write():
            self._ledger.db.execute(_FORGET, (to_micros(before),))


def _cells(left: LeftPath) -> tuple[rows.Cell, ...]:
    return (
        os.fsencode(left.path),
        os.fsencode(left.name),
        os.fsencode(left.scope),
        left.is_stash,
        left.opened_at,
        os.fsencode(left.by),
        left.found,
        left.left,
        left.must_be_same,
        left.written,
    )


def _from(row: rows.Row) -> LeftPath:
    path, name, scope, is_stash, opened_at, by, found, left, must_be_same, written = row
    return LeftPath(
        path=os.fsdecode(path),
        name=os.fsdecode(name),
        scope=os.fsdecode(scope),
        is_stash=bool(is_stash),
        opened_at=opened_at,
        by=os.fsdecode(by),
        found=found,
        left=left,
        must_be_same=bool(must_be_same),
        written=written,
    )

"""The notices in the ledger: what is owed to whom, who is telling it, what came of it."""

from __future__ import annotations

from outlive.domain.notice import Notice
from outlive.domain.task import Origin
from outlive.domain.when import from_micros, to_micros
from outlive.ledger import rows
from outlive.ledger.sqlite import MEMBERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from outlive.domain.task import Task
    from outlive.ledger.sqlite import SqliteLedger

_OPEN = "state IN ('pending', 'claimed', 'presented')"
_NOTICE = """
    SELECT seq, id, task, attempt, kind, origin, state, created_at, claimer, tries, presented_to, last_error
    FROM notice"""
_CLAIM = f"UPDATE notice SET state = 'claimed', claimer = ? WHERE id = ? AND {_OPEN}"
_PRESENT = """
    UPDATE notice SET state = 'presented', claimer = NULL, tries = tries + 1, presented_to = ?, presented_at = ?,
        last_error = NULL
    WHERE id = ? AND claimer = ?"""
_RELEASE = """
    UPDATE notice SET state = 'pending', claimer = NULL, last_error = coalesce(?, last_error)
    WHERE id = ? AND claimer = ?"""
_CLOSE = f"UPDATE notice SET state = ?, claimer = NULL, closed_at = ? WHERE id = ? AND {_OPEN}"
_CONFIRM = """
    UPDATE notice SET state = 'acked', closed_at = ? WHERE id = ? AND state = 'presented' AND presented_to = ?"""
# What is read with a result: how the task ended, also as the last of its group, and what came before.
_READ = f"""
    SELECT notice.id FROM notice JOIN session ON session.seq = notice.origin
    WHERE notice.task = ? AND session.lineage = ? AND {_OPEN}"""
_LINEAGE = "SELECT lineage FROM notice JOIN session ON session.seq = notice.origin WHERE notice.id = ?"
_LIVE_MEMBERS = f"""
    SELECT count(*) FROM task JOIN attempt newest ON newest.task = task.id AND newest.number = task.attempt
    WHERE newest.settled_at IS NULL AND task.id IN ({MEMBERS})"""
_ORIGIN = """
    SELECT task.origin, session.lineage, task.boundary FROM task JOIN session ON session.seq = task.origin
    WHERE task.id = ?"""

# Endings of newest attempts that are of this hour, or of this day; only so many of the newest are looked at.
_LEFT_BEHIND = f"""
    SELECT newest.task FROM (SELECT * FROM notice ORDER BY seq DESC LIMIT ?) notice
    JOIN task ON task.id = notice.task AND task.attempt = notice.attempt
    JOIN attempt newest ON newest.task = notice.task AND newest.number = notice.attempt
    WHERE notice.kind IN ('ended', 'lost') AND newest.state <> 'succeeded' AND (
        notice.created_at >= ? OR (notice.created_at >= ? AND notice.{_OPEN} AND notice.origin > 0))
    ORDER BY notice.seq"""
_MOST_ENDINGS = 200


class Inbox:
    """The part of the ledger that tells."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self._ledger = ledger

    def owed(self, origins: Sequence[int]) -> list[Notice]:
        """What has not been acknowledged of the endings that these sessions are to be told, in their order."""
        found: list[Notice] = []
        for origin in origins:
            found += self._notices(f"{_NOTICE} WHERE origin = ? AND {_OPEN} ORDER BY seq", (origin,))
        return sorted(found, key=lambda notice: notice.seq)

    def origins_in(self, project: str) -> list[int]:
        """The sessions of a project that are owed anything."""
        query = f"SELECT DISTINCT origin FROM notice WHERE project = ? AND {_OPEN}"
        return [row[0] for row in self._ledger.select(query, (rows.text(project),))]

    def owed_in(self, project: str, origins: Sequence[int], limit: int) -> list[Notice]:
        """What these sessions of a project are owed, newest first."""
        marks = ", ".join(str(int(origin)) for origin in origins)
        query = f"{_NOTICE} WHERE project = ? AND {_OPEN} AND origin IN ({marks}) ORDER BY seq DESC LIMIT ?"
        return self._notices(query, (rows.text(project), limit))

    def left_behind(self, recent: datetime, untold: datetime) -> list[Task]:
        """Tasks that ended without success since `recent`; since `untold`, if a session is still to be told."""
        found = self._ledger.select(_LEFT_BEHIND, (_MOST_ENDINGS, to_micros(recent), to_micros(untold)))
        return [task for (name,) in found if (task := self._ledger.task(name)) is not None]

    def find(self, prefix: str) -> list[Notice]:
        """Notices whose id begins so; there is no need for more than two."""
        return self._notices(f"{_NOTICE} WHERE id >= ? AND id < ? ORDER BY id LIMIT 2", (prefix, prefix + "{"))

    def claim(self, notices: Sequence[Notice], claimer: str) -> None:
        """Take them, in the name of a lease that is held."""
        with self._ledger.write():
            for notice in notices:
                self._ledger.db.execute(_CLAIM, (claimer, notice.id))

    def present(self, notices: Sequence[Notice], claimer: str, session: int, now: datetime) -> None:
        """They have been put before a session."""
        with self._ledger.write():
            for notice in notices:
                self._ledger.db.execute(_PRESENT, (session, to_micros(now), notice.id, claimer))

    def release(self, notices: Sequence[Notice], claimer: str, error: str | None) -> None:
        """They could not be told, and are as they were."""
        with self._ledger.write():
            for notice in notices:
                self._ledger.db.execute(_RELEASE, (rows.sentence(error), notice.id, claimer))

    def confirm(self, notices: Sequence[Notice], session: int, now: datetime) -> list[str]:
        """The session shows that it has got what was presented to it; the ids of those that were open."""
        return self._each(notices, _CONFIRM, lambda notice: (to_micros(now), notice.id, session))

    def acknowledge(self, notices: Sequence[Notice], now: datetime) -> list[str]:
        """They were received."""
        return self._each(notices, _CLOSE, lambda notice: ("acked", to_micros(now), notice.id))

    def dismiss(self, notices: Sequence[Notice], now: datetime) -> list[str]:
        """Nobody wants to hear of them any more."""
        return self._each(notices, _CLOSE, lambda notice: ("dismissed", to_micros(now), notice.id))

    def read(self, task: str, lineage: str, now: datetime) -> list[str]:
        """A session of the lineage has read the result of a task itself."""
        with self._ledger.write():
            closed = [row[0] for row in self._ledger.select(_READ, (task, lineage))]
            for notice in closed:
                self._ledger.db.execute(_CLOSE, ("acked", to_micros(now), notice))
        return closed

    def lineage_of(self, notice: str) -> str | None:
        """The lineage that a notice is owed to; None if to nobody."""
        found = self._ledger.select(_LINEAGE, (notice,))
        return found[0][0] if found else None

    def members_of(self, task: str) -> frozenset[str]:
        """The tasks of a task's group, itself among them; empty if it has none."""
        return frozenset(row[0] for row in self._ledger.select(MEMBERS, (task,)))

    def remaining(self, task: str) -> int:
        """How many of a task's group have not ended."""
        return int(self._ledger.select(_LIVE_MEMBERS, (task,))[0][0])

    def origin_of(self, task: str) -> Origin | None:
        """The session that launched a task."""
        found = self._ledger.select(_ORIGIN, (task,))
        return Origin(session=found[0][0], lineage=found[0][1], boundary=found[0][2]) if found else None

    def _each(
        self, notices: Sequence[Notice], statement: str, cells: Callable[[Notice], tuple[rows.Cell, ...]]
    ) -> list[str]:
        changed = []
        with self._ledger.write():
            for notice in notices:
                self._ledger.db.execute(statement, cells(notice))
                if self._ledger.db.changes():
                    changed.append(notice.id)
        return changed

    def _notices(self, query: str, cells: tuple[rows.Cell, ...]) -> list[Notice]:
        return [_notice_from(row) for row in self._ledger.select(query, cells)]


def _notice_from(row: rows.Row) -> Notice:
    seq, id_, task, attempt, kind, origin, state, created, claimer, tries, presented_to, last_error = row
    return Notice(
        seq=seq,
        id=id_,
        task=task,
        attempt=attempt,
        kind=kind,
        origin=origin,
        state=state,
        created_at=from_micros(created),
        claimer=claimer,
        tries=tries,
        presented_to=presented_to,
        last_error=last_error,
    )

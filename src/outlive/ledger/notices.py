"""The notices in the ledger: for whom they are, and how far their delivery is."""

from __future__ import annotations

from outlive.domain.notices.notice import MOST_PRESENTATIONS, Notice, count_running
from outlive.domain.tasks.task import AWAITED, Origin
from outlive.domain.timestamps import from_micros, to_micros
from outlive.ledger import rows
from outlive.ledger.sqlite import MEMBERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from datetime import datetime
    from typing import Literal

    from outlive.ledger.sqlite import SqliteLedger

    When = Literal["ever", "boundary", "now", "wake"]

OPEN = "state IN ('pending', 'claimed', 'presented')"
_NOTICE = """
    SELECT notice.seq, notice.id, notice.task, notice.attempt, notice.kind, notice.origin, state, notice.created_at,
        claimer, tries, presented_to, last_error, is_quiet
    FROM notice"""
# The SQL conditions for notices that may be presented on a certain occasion: when a session begins or continues after a
# compaction (`boundary`), while it works (`now`), or by waking it (`wake`). `ever` selects all notices that are not
# acknowledged or dismissed.
_WHEN = {
    "ever": "1",
    "boundary": f"(state <> 'presented' OR tries < {MOST_PRESENTATIONS})",
    "now": "state <> 'presented'",
    "wake": "state <> 'presented' AND NOT is_quiet",
}
_CLAIM = f"UPDATE notice SET state = 'claimed', claimer = ? WHERE id = ? AND {OPEN}"
_PRESENT = """
    UPDATE notice SET state = 'presented', claimer = NULL, tries = tries + 1, presented_to = ?, presented_at = ?,
        last_error = NULL
    WHERE id = ? AND claimer = ?"""
_RELEASE = """
    UPDATE notice SET state = 'pending', claimer = NULL, last_error = coalesce(?, last_error)
    WHERE id = ? AND claimer = ?"""
_CLOSE = f"UPDATE notice SET state = ?, claimer = NULL, closed_at = ? WHERE id = ? AND {OPEN}"
_CONFIRM = """
    UPDATE notice SET state = 'acked', closed_at = ? WHERE state = 'presented' AND presented_to = ? RETURNING id"""
_PRESENT_ALL = """
    UPDATE notice SET state = 'presented', claimer = NULL, tries = tries + 1, presented_to = ?, presented_at = ?,
        last_error = NULL
    WHERE state = 'claimed' AND claimer = ?"""
# A session that reads a task's result acknowledges all notices of the task: the one of its end, the one of the end of
# its group, and earlier ones.
_READ = f"UPDATE notice SET state = 'acked', claimer = NULL, closed_at = ? WHERE task = ? AND {OPEN} RETURNING id"
_SHOWN_TO = f"""
    SELECT DISTINCT shown.task, task.origin FROM shown JOIN task ON task.id = shown.task
    WHERE shown.session IN ({{}}) AND task.origin IS NOT NULL AND (
        EXISTS (SELECT 1 FROM notice WHERE notice.task = task.id AND notice.{OPEN})
        OR EXISTS (SELECT 1 FROM attempt WHERE attempt.task = task.id AND settled_at IS NULL))"""
# Selects the notice of the end of a task's newest attempt. If this task was the last of its group, the notice of the
# group's end is selected too.
_ENDING = """
    JOIN task ON task.id = notice.task AND task.attempt = notice.attempt
    WHERE notice.task = ? AND notice.kind IN ('ended', 'lost', 'group_ended') ORDER BY notice.seq"""
# Selects the acknowledged notices of ended tasks: tasks that the given sessions launched, and tasks of other sessions
# whose notices were presented to the given sessions.
_TOLD_SINCE = """
    SELECT task.id FROM task JOIN attempt newest ON newest.task = task.id AND newest.number = task.attempt
    JOIN notice ON notice.task = task.id AND notice.attempt = task.attempt
    WHERE notice.kind IN ('ended', 'lost') AND notice.state = 'acked'
        AND ((task.origin IN ({origins}) AND newest.settled_at >= ?1)
            OR (notice.presented_to IN ({kin}) AND notice.presented_at >= ?1))
    ORDER BY newest.settled_at DESC LIMIT ?2"""
_LIVE_MEMBERS = f"""
    SELECT count(*) FROM task JOIN attempt newest ON newest.task = task.id AND newest.number = task.attempt
    WHERE newest.settled_at IS NULL AND task.id IN ({MEMBERS})"""
_SPANS = f"""
    SELECT task.created_at, newest.settled_at FROM task
    JOIN attempt newest ON newest.task = task.id AND newest.number = task.attempt
    WHERE task.notify IN {AWAITED} AND task.origin IN (
        SELECT kin.seq FROM session own JOIN session kin ON kin.lineage = own.lineage WHERE own.seq = ?)
    ORDER BY task.seq DESC LIMIT ?"""
# Only the newest tasks of a long batch are counted. If all tasks were counted, each further task would make a notice
# slower.
_MOST_SPANS = 400
_ORIGIN = """
    SELECT task.origin, session.lineage, task.boundary FROM task JOIN session ON session.seq = task.origin
    WHERE task.id = ?"""


class Notices:
    """The part of the ledger that records notices."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self._ledger = ledger

    def owed(
        self,
        origins: Sequence[int],
        tasks: Sequence[str] = (),
        *,
        when: When = "ever",
        kind: str | None = None,
        after: int = 0,
        limit: int = -1,
    ) -> list[Notice]:
        """Return the open notices of the given sessions and tasks, oldest first.

        A notice is open until it is acknowledged or dismissed. `origins` are the numbers of the sessions. `when` is the
        occasion: only notices that may be presented then are returned. `after` is a notice's number: only later notices
        are returned.
        """
        where = f"{OPEN} AND {_WHEN[when]} AND seq > ?" + ("" if kind is None else " AND kind = ?")
        cells = (after, *(() if kind is None else (kind,)), limit)
        found: list[Notice] = []
        keys: list[tuple[str, rows.Cell]] = [*(("origin", one) for one in origins), *(("task", one) for one in tasks)]
        for column, value in keys:
            query = f"{_NOTICE} WHERE {column} = ? AND {where} ORDER BY seq LIMIT ?"
            found += self._notices(query, (value, *cells))
        found.sort(key=lambda notice: notice.seq)
        return found if limit < 0 else found[:limit]

    def count(self, origins: Sequence[int], tasks: Sequence[str] = (), when: When = "ever") -> dict[str, int]:
        """Return how many open notices the given sessions and tasks have, by kind.

        A notice is open until it is acknowledged or dismissed. Only notices that may be presented on the occasion
        `when` count.
        """
        inside, named = ", ".join(str(int(origin)) for origin in origins), ", ".join("?" * len(tasks))
        query = f"""
            SELECT kind, count(*) FROM notice WHERE {OPEN} AND {_WHEN[when]}
            AND (origin IN ({inside}) OR task IN ({named})) GROUP BY kind"""
        return dict(self._ledger.select(query, tuple(tasks)))

    def open_states(self, origins: Sequence[int], tasks: Sequence[str] = (), when: When = "ever") -> set[str]:
        """Return the delivery states of the notices that may be presented at `when`.

        Only open notices of the given sessions and tasks count. A notice is open until it is acknowledged or dismissed.
        """
        inside, named = ", ".join(str(int(origin)) for origin in origins), ", ".join("?" * len(tasks))
        query = f"""
            SELECT DISTINCT state FROM notice WHERE {OPEN} AND {_WHEN[when]}
            AND (origin IN ({inside}) OR task IN ({named}))"""
        return {row[0] for row in self._ledger.select(query, tuple(tasks))}

    def parts_of(self, whole: Notice, origins: Sequence[int], tasks: Sequence[str], when: When) -> list[Notice]:
        """Return the open notices of a group's tasks from before the group's own notice.

        `whole` is the group's own notice. Only notices of the given sessions and tasks are returned, because other
        notices may be for another session. A notice is open until it is acknowledged or dismissed.
        """
        inside, named = ", ".join(str(int(origin)) for origin in origins), ", ".join("?" * len(tasks))
        query = f"""
            {_NOTICE} WHERE {OPEN} AND {_WHEN[when]} AND seq < ? AND task IN ({MEMBERS})
            AND (origin IN ({inside}) OR task IN ({named})) ORDER BY seq"""
        return self._notices(query, (whole.seq, whole.task, *tasks))

    def told_since(self, origins: Sequence[int], kin: Collection[int], since: datetime, limit: int) -> list[str]:
        """Return the newest ended tasks whose notices were acknowledged.

        The result has tasks that sessions in `origins` launched, if the tasks ended after the time `since`. It also has
        tasks whose notices were presented to a session in `kin` after this time.
        """
        inside, told = (", ".join(str(int(one)) for one in each) for each in (origins, kin))
        found = self._ledger.select(_TOLD_SINCE.format(origins=inside, kin=told), (to_micros(since), limit))
        return [row[0] for row in found]

    def presented_to(self, session: int, limit: int) -> list[Notice]:
        """Return the newest notices that were presented to a session.

        Notices that the session has confirmed are left out.
        """
        query = f"{_NOTICE} WHERE presented_to = ? AND state = 'presented' ORDER BY seq DESC LIMIT ?"
        return self._notices(query, (session, limit))

    def note_shown(self, tasks: Sequence[str], session: int) -> None:
        """Record that a session was told of running tasks of an earlier session."""
        with self._ledger.write():
            for task in tasks:
                self._ledger.db.execute("INSERT OR IGNORE INTO shown (task, session) VALUES (?, ?)", (task, session))

    def tasks_shown_to(self, sessions: Collection[int]) -> list[tuple[str, int]]:
        """Return the running tasks of which one of the given sessions was told.

        Each task comes with the session that launched it. Only tasks that still run, or whose notice is not
        acknowledged, are returned.
        """
        inside = ", ".join(str(int(session)) for session in sessions)
        return [(row[0], row[1]) for row in self._ledger.select(_SHOWN_TO.format(inside))]

    def sessions_shown(self, task: str) -> list[int]:
        """Return the sessions that were told of a running task."""
        return [
            row[0] for row in self._ledger.select("SELECT session FROM shown WHERE task = ? ORDER BY session", (task,))
        ]

    def last_told(self, task: str) -> list[int]:
        """Return the sessions to which the open notices of a task were presented.

        A notice is open until it is acknowledged or dismissed.
        """
        query = f"SELECT DISTINCT presented_to FROM notice WHERE task = ? AND {OPEN} AND presented_to IS NOT NULL"
        return [row[0] for row in self._ledger.select(query, (task,))]

    def find(self, prefix: str) -> list[Notice]:
        """Return at most two notices whose ids begin with a prefix.

        If two notices are returned, the prefix is ambiguous.
        """
        return self._notices(f"{_NOTICE} WHERE id >= ? AND id < ? ORDER BY id LIMIT 2", (prefix, prefix + "{"))

    def claim(self, notices: Sequence[Notice], claimer: str) -> None:
        """Reserve notices for one process, so that no other process presents them.

        `claimer` names the lock of the process.
        """
        with self._ledger.write():
            for notice in notices:
                self._ledger.db.execute(_CLAIM, (claimer, notice.id))

    def present(self, notices: Sequence[Notice], claimer: str, session: int, now: datetime) -> None:
        """Record that reserved notices were presented to a session.

        `claimer` names the lock of the process that reserved them.
        """
        with self._ledger.write():
            for notice in notices:
                self._ledger.db.execute(_PRESENT, (session, to_micros(now), notice.id, claimer))

    def release(self, notices: Sequence[Notice], claimer: str, error: str | None) -> None:
        """Make reserved notices pending again, because they could not be delivered.

        `claimer` names the lock of the process that reserved them. `error` says why the delivery failed.
        """
        with self._ledger.write():
            for notice in notices:
                self._ledger.db.execute(_RELEASE, (rows.sentence(error), notice.id, claimer))

    def present_all(self, claimer: str, session: int, now: datetime) -> None:
        """Record that all notices that a process reserved were presented to a session.

        `claimer` names the lock of the process.
        """
        with self._ledger.write():
            self._ledger.db.execute(_PRESENT_ALL, (session, to_micros(now), claimer))

    def confirm(self, session: int, now: datetime) -> list[str]:
        """Acknowledge the notices presented to a session, and return their ids."""
        with self._ledger.write():
            return [row[0] for row in self._ledger.select(_CONFIRM, (to_micros(now), session))]

    def acknowledge(self, notices: Sequence[Notice], now: datetime) -> list[str]:
        """Mark notices as acknowledged. Return the ids of those that were not yet closed."""
        return self._each(notices, _CLOSE, lambda notice: ("acked", to_micros(now), notice.id))

    def dismiss(self, notices: Sequence[Notice], now: datetime) -> list[str]:
        """Mark notices as dismissed. Return the ids of those that were not yet closed."""
        return self._each(notices, _CLOSE, lambda notice: ("dismissed", to_micros(now), notice.id))

    def read(self, task: str, now: datetime) -> list[str]:
        """Acknowledge the notices of a task whose result was read. Return their ids."""
        with self._ledger.write():
            return [row[0] for row in self._ledger.select(_READ, (to_micros(now), task))]

    def ending_of(self, task: str) -> list[Notice]:
        """Return the notices about the end of a task's newest attempt.

        Acknowledged notices are included. The notice of the attempt comes before the notice of its group.
        """
        return self._notices(_NOTICE + _ENDING, (task,))

    def reserved_by(self, task: str) -> str | None:
        """Return which process has reserved the notice of a running task's end, or None.

        The result is the name of the process's lock, which may be released already.
        """
        found = self._ledger.select("SELECT reserved_by FROM task WHERE id = ?", (task,))
        return found[0][0] if found else None

    def reserve(self, task: str, claimer: str) -> None:
        """Reserve the notice of a running task's end for one process.

        When the task ends, no other process can present its notice. `claimer` names the lock of the process.
        """
        with self._ledger.write():
            self._ledger.db.execute("UPDATE task SET reserved_by = ? WHERE id = ?", (claimer, task))

    def members_of(self, task: str) -> frozenset[str]:
        """Return the tasks of a task's group, including the task itself.

        The result is empty if the task has no group.
        """
        return frozenset(row[0] for row in self._ledger.select(MEMBERS, (task,)))

    def remaining(self, task: str) -> int:
        """Return how many tasks of a task's group have not ended."""
        return int(self._ledger.select(_LIVE_MEMBERS, (task,))[0][0])

    def running_of_session(self, origin: int) -> tuple[int, int]:
        """Return how many tasks of a session run, and how many its present batch has.

        Tasks of the sessions that this session continues count, too. The batch consists of the tasks that were launched
        since none of these tasks was running. Tasks that no session waits for do not count.
        """
        newest = self._ledger.select(_SPANS, (origin, _MOST_SPANS))
        return count_running([(row[0], row[1]) for row in reversed(newest)])

    def origin_of(self, task: str) -> Origin | None:
        """Return the session that launched a task, or None if no session launched it."""
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
    """Return the notice that a row describes.

    The columns have the order of the fields of `Notice`.
    """
    found = dict(zip(Notice._fields, row, strict=True))
    return Notice(**{**found, "created_at": from_micros(found["created_at"]), "is_quiet": bool(found["is_quiet"])})

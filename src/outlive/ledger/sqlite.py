"""The implementation of the ledger in SQLite."""

from __future__ import annotations

from outlive.domain.errors import TooManyWaiting
from outlive.domain.tasks.lifecycle import LIVE
from outlive.domain.tasks.queueing import MOST_WAITING
from outlive.domain.tasks.settlement import notice_id
from outlive.domain.tasks.sink_config import Delivery
from outlive.domain.tasks.task import AWAITED, History, Task
from outlive.domain.text.sanitize import to_json
from outlive.domain.timestamps import from_micros, to_micros
from outlive.ledger import completeness, rows
from outlive.ledger.connection import LedgerFile
from outlive.ledger.open_ledger import apsw, fingerprint_in
from outlive.ledger.sessions import Sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from outlive.domain.tasks.evidence import Evidence
    from outlive.domain.tasks.lifecycle import Condition
    from outlive.domain.tasks.settlement import Settlement
    from outlive.domain.tasks.task import Attempt, Launch, NoticeRow
    from outlive.ledger.contract import Selection, Within

_MARKS = ", ".join("?" * len(rows.TASK_COLUMNS.split(",")))
_ENQUEUE = f"INSERT INTO task ({rows.TASK_COLUMNS}) VALUES ({_MARKS})"
_ADD_ATTEMPT = """
    INSERT INTO attempt (task, number, boot, pid_namespace, created_at, not_before, automatic, claims, agent)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""
# An attempt joins the queue when its row is inserted, except if it first has to wait for another task or until a
# certain time.
DRAW_TICKET = """
    UPDATE attempt SET ticket = (SELECT coalesce(max(ticket), 0) + 1 FROM attempt)
    WHERE task = ? AND number = ? AND ticket IS NULL
        AND EXISTS (
            SELECT 1 FROM task WHERE task.id = attempt.task AND coalesce(attempt.claims, task.claims) <> '[]')"""
_WAITING = "SELECT count(*) FROM attempt WHERE state = 'queued'"
_NEXT_ATTEMPT = """
    UPDATE task SET attempt = attempt + 1 WHERE id = ?1 AND attempt = ?2 - 1 AND EXISTS
    (SELECT 1 FROM attempt WHERE task = ?1 AND number = ?2 - 1 AND settled_at IS NOT NULL)"""
_START = "UPDATE attempt SET state = 'running', started_at = ? WHERE task = ? AND number = ? AND state = 'queued'"
_CONDITION = "UPDATE attempt SET condition = ? WHERE task = ? AND number = ? AND settled_at IS NULL"
# A row changes only if the attempt is the newest attempt of its task and has not ended yet (compare-and-set).
_SETTLE = """
    UPDATE attempt SET state = ?, exit_code = ?, signal = ?, reason = ?, detail = ?, ended_at = ?, settled_at = ?,
        settled_by = ?, delete_after = ?, left_running = ?, output_bytes = ?, output_dropped = ?,
        output_truncated = ?, condition = NULL, agent = coalesce(?, agent)
    WHERE task = ? AND number = ? AND settled_at IS NULL
        AND number = (SELECT task.attempt FROM task WHERE task.id = attempt.task)"""
_ORIGIN = "UPDATE task SET session = ?, origin = ?, boundary = ? WHERE id = ?"
# If a process has reserved the notice of a task's end, the notice is assigned to this process at once. `claimer` is the
# name of the process's lock.
_NOTICE = """
    INSERT INTO notice (id, task, attempt, kind, state, created_at, claimer, session, origin, project, is_quiet)
    SELECT ?1, id, ?2, ?3, iif(reserved, 'claimed', ?4), ?5, iif(reserved, reserved_by, NULL), session, origin,
        (SELECT project FROM session WHERE seq = origin), ?7
    FROM (SELECT *, ?4 = 'pending' AND ?3 <> 'retrying' AND reserved_by IS NOT NULL AS reserved FROM task)
    WHERE id = ?6"""
# The members of a task's group: the tasks with the same group name that were launched by sessions of one chain, in
# which each session continues the one before.
MEMBERS = """
    SELECT member.id FROM task anchor
    JOIN task member ON member.grp = anchor.grp
    WHERE anchor.id = ? AND member.origin IN (
        SELECT kin.seq FROM session own JOIN session kin ON kin.lineage = own.lineage WHERE own.seq = anchor.origin)"""
_GROUP = f"""
    SELECT count(*), sum(newest.settled_at IS NULL),
        sum(notify IN {AWAITED} OR (notify = 'failure' AND newest.state <> 'succeeded')),
        sum(notify = 'output' AND newest.state = 'succeeded' AND newest.output_bytes IS 0)
    FROM task JOIN attempt newest ON newest.task = task.id AND newest.number = task.attempt
    WHERE task.id IN ({MEMBERS})"""
# Only tasks with `notify = 'all'` get notices of conditions such as stalled, one for each attempt and condition.
_NOTICE_OF_CONDITION = """
    INSERT OR IGNORE INTO notice (id, task, attempt, kind, state, created_at, session, origin, project)
    SELECT ?, id, ?, ?, 'pending', ?, session, origin, (SELECT project FROM session WHERE seq = origin)
    FROM task WHERE id = ? AND notify = 'all'"""
# An attempt that has ended meanwhile gets no notice of an overlap, because the notice of its end reports the overlap.
_NOTICE_OF_OVERLAP = """
    INSERT OR IGNORE INTO notice (id, task, attempt, kind, state, created_at, session, origin, project)
    SELECT ?1, id, ?2, 'overlap', 'pending', ?3, session, origin, (SELECT project FROM session WHERE seq = origin)
    FROM task WHERE id = ?4 AND notify <> 'never' AND EXISTS
    (SELECT 1 FROM attempt WHERE attempt.task = task.id AND number = ?2 AND settled_at IS NULL)"""
# The notice of the end of an agent task names all attempts of the task. So the pending notices of earlier attempts are
# dismissed.
_SUPERSEDE = "UPDATE notice SET state = 'dismissed' WHERE task = ? AND kind = 'retrying' AND state = 'pending'"
# A sink (a receiver that the user configured) gets only notices that are to be delivered (`pending`).
_DELIVERIES = """
    INSERT INTO delivery (notice, sink, state)
    SELECT ?1, name, 'pending' FROM sink
    WHERE (sink.project IS NULL OR sink.project = (SELECT project FROM task WHERE id = ?2))
        AND (policy = 'all' OR (?3 IN ('ended', 'lost', 'group_ended') AND (policy = 'end' OR ?4 <> 'succeeded')))"""
_NOTICE_COLUMNS = "id, task, attempt, kind, session, state, created_at, tries, last_error"
_EVIDENCE = """
    INSERT INTO evidence
    SELECT ?1, ?2, (SELECT count(*) FROM evidence WHERE task = ?1 AND attempt = ?2),
        ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11
    WHERE EXISTS (SELECT 1 FROM attempt WHERE task = ?1 AND number = ?2)"""
_DELIVERED = """
    SELECT notice, sink, delivery.state, delivery.tries, delivery.last_error
    FROM delivery JOIN notice ON notice.id = delivery.notice WHERE task = ? ORDER BY notice.seq, sink"""
_TASK = f"SELECT {rows.TASK_COLUMNS}, attempt, (SELECT lineage FROM session WHERE seq = task.origin) FROM task"
_ATTEMPTS = f"SELECT {rows.ATTEMPT_COLUMNS} FROM attempt WHERE task = ? ORDER BY number"
_LIVE = "id IN (SELECT task FROM attempt WHERE state IN ('queued', 'running'))"
_UNSETTLED = f"{_TASK} WHERE {_LIVE} ORDER BY seq"
# Few tasks run at a time, so this search needs no index on the command.
_COPIES = """
    SELECT task.id FROM attempt INDEXED BY attempt_unsettled JOIN task ON task.id = attempt.task
    WHERE attempt.state IN ('queued', 'running') AND attempt.state = 'running'
        AND task.argv = ? AND task.cwd = ? AND task.project = ? AND task.kind <> 'agent' AND task.id <> ?
    ORDER BY task.seq DESC"""
_UNDELIVERED = f"""
    SELECT {_NOTICE_COLUMNS} FROM notice
    WHERE state IN ('pending', 'claimed', 'presented') AND origin > 0 AND created_at < ? ORDER BY seq"""


# The statements that every settlement executes, each with the number of its parameters.
_SETTLEMENT = (("BEGIN IMMEDIATE", 0), (_EVIDENCE, 11), (_SETTLE, 16), (_NOTICE, 7), (_DELIVERIES, 4), ("COMMIT", 0))


class SqliteLedger(LedgerFile):
    """The ledger of one machine. `contract.Ledger` describes the methods."""

    def enqueue(self, launch: Launch, attempt: Attempt) -> Task:
        with self.write():
            holder = self.with_key(launch.project, launch.key) if launch.key is not None else None
            if holder is not None:
                return holder
            self._check_waiting(attempt)
            self.db.execute(_ENQUEUE, rows.launch_row(launch))
            self.set_session(launch)
            self._insert_attempt(launch.id, attempt)
            if not launch.after or attempt.started_at is not None:
                self.db.execute(DRAW_TICKET, (launch.id, attempt.number))
        return Task(launch=launch, attempts=(attempt,))

    def set_session(self, launch: Launch) -> None:
        """Record the session that launches a task. This session is notified of the task.

        If no session launches the task, nothing changes.
        """
        if launch.session is not None:
            origin = Sessions(self).heard_of(launch.session, launch.session_project or launch.project, self._now)
            Sessions(self).set_parent(origin[0], launch.parent)
            self.db.execute(_ORIGIN, (rows.text(launch.session), *origin, launch.id))

    def _check_waiting(self, attempt: Attempt) -> None:
        if attempt.started_at is None and self.select(_WAITING)[0][0] >= MOST_WAITING:
            raise TooManyWaiting(
                f"{MOST_WAITING} tasks are waiting for their turn already, and more are not allowed",
                "wait for some of these tasks, or cancel some: `outlive list --all --state queued` shows them",
            )

    def add_attempt(self, task: str, attempt: Attempt) -> bool:
        with self.write():
            self.db.execute(_NEXT_ATTEMPT, (task, attempt.number))
            if self.db.changes() == 0:
                return False
            self._check_waiting(attempt)
            self._insert_attempt(task, attempt)
            if attempt.started_at is not None or self._has_begun_before(task) or not self._depends(task):
                self.db.execute(DRAW_TICKET, (task, attempt.number))
        return True

    def _has_begun_before(self, task: str) -> bool:
        return bool(self.select("SELECT 1 FROM attempt WHERE task = ? AND started_at IS NOT NULL LIMIT 1", (task,)))

    def _depends(self, task: str) -> bool:
        return bool(self.select("SELECT 1 FROM task WHERE id = ? AND after <> '[]'", (task,)))

    def _insert_attempt(self, task: str, attempt: Attempt) -> None:
        cells = (
            task,
            attempt.number,
            attempt.boot,
            attempt.pid_namespace,
            to_micros(attempt.created_at),
            rows.micros(attempt.not_before),
            attempt.automatic,
            rows.claims_cell(attempt.claims),
            rows.agent_cell(attempt.agent),
        )
        self.db.execute(_ADD_ATTEMPT, cells)
        completeness.count_attempt(self._path, *fingerprint_in(self.db))
        if attempt.started_at is not None:
            self.db.execute(_START, (to_micros(attempt.started_at), task, attempt.number))

    def start(self, task: str, attempt: int, now: datetime) -> bool:
        with self.write():
            self.db.execute(_START, (to_micros(now), task, attempt))
            return self.db.changes() == 1

    def set_condition(self, task: str, attempt: int, condition: Condition | None) -> None:
        with self.write():
            self.db.execute(_CONDITION, (condition, task, attempt))
            if condition in ("stalled", "input_required") and self.db.changes():
                name = notice_id(task, attempt, condition)
                self.db.execute(_NOTICE_OF_CONDITION, (name, attempt, condition, to_micros(self._now), task))
                if self.db.changes():
                    self.db.execute(_DELIVERIES, (name, task, condition, "running"))

    def note_overlap(self, task: str, attempt: int) -> None:
        """Notify the session that another task writes in the same directory tree.

        An attempt gets at most one such notice.
        """
        with self.write():
            name = notice_id(task, attempt, "overlap")
            self.db.execute(_NOTICE_OF_OVERLAP, (name, attempt, to_micros(self._now), task))
            if self.db.changes():
                self.db.execute(_DELIVERIES, (name, task, "overlap", "running"))

    def settle(self, settlement: Settlement, again: Attempt | None = None) -> bool:
        verdict, output = settlement.verdict, settlement.output
        with self.write():
            self._insert_evidence(settlement.task, settlement.attempt, settlement.evidence, settlement.settled_at)
            self.db.execute(
                _SETTLE,
                (
                    verdict.state,
                    verdict.exit_code,
                    verdict.signal,
                    verdict.reason,
                    rows.sentence(verdict.detail),
                    rows.micros(settlement.evidence.at),
                    to_micros(settlement.settled_at),
                    settlement.settled_by,
                    to_micros(settlement.delete_after),
                    rows.left_running_text(settlement.left_running),
                    output.written,
                    output.dropped,
                    output.truncated,
                    rows.agent_cell(settlement.agent),
                    settlement.task,
                    settlement.attempt,
                ),
            )
            if self.db.changes() == 0:
                return False
            self._insert_notice(
                settlement, settlement.notice_id, settlement.notice_kind, settlement.notice_state, settlement.is_quiet
            )
            if again is not None:
                self.db.execute(_NEXT_ATTEMPT, (settlement.task, again.number))
                self._insert_attempt(settlement.task, again)
            elif settlement.agent is not None:
                self.db.execute(_SUPERSEDE, (settlement.task,))
            if again is None and settlement.group is not None and settlement.session is not None:
                members, live, told, quiet = self.select(_GROUP, (settlement.task,))[0]
                if members > 1 and not live:
                    name = notice_id(settlement.task, settlement.attempt, "group_ended")
                    state = "pending" if told else "dismissed"
                    self._insert_notice(settlement, name, "group_ended", state, is_quiet=quiet == told)
        return True

    def _insert_notice(self, settlement: Settlement, name: str, kind: str, state: str, is_quiet: bool) -> None:
        at = to_micros(settlement.settled_at)
        self.db.execute(_NOTICE, (name, settlement.attempt, kind, state, at, settlement.task, is_quiet))
        if state == "pending":
            self.db.execute(_DELIVERIES, (name, settlement.task, kind, settlement.verdict.state))

    def owes_sinks(self) -> bool:
        """Return whether a notice waits to be delivered to a sink.

        A sink is a receiver of notices that the user configured.
        """
        return bool(self.select("SELECT 1 FROM delivery WHERE state = 'pending' LIMIT 1"))

    def get_ready_to_settle(self) -> None:
        """Compile the statements of a settlement before the settlement.

        Compiling the statements takes longer than executing them. The connection's cache keeps the compiled statements.
        The other memory of the connection is freed.
        """
        cursor = self.db.cursor()
        cursor.exec_trace = lambda *_: False  # called when a statement is compiled; False prevents its execution
        for statement, cells in _SETTLEMENT:
            try:
                cursor.execute(statement, (None,) * cells)
            except apsw.ExecTraceAbort:
                continue
            except apsw.Error:
                break  # the settlement itself reports the failure
        self.db.release_memory()

    def add_evidence(self, task: str, attempt: int, evidence: Evidence, now: datetime) -> None:
        with self.write():
            self._insert_evidence(task, attempt, evidence, now)

    def _insert_evidence(self, task: str, attempt: int, evidence: Evidence, now: datetime) -> None:
        self.db.execute(_EVIDENCE, (task, attempt, to_micros(now), *rows.evidence_row(evidence)))

    def task(self, task: str) -> Task | None:
        found = self._tasks(f"{_TASK} WHERE id = ?", (task,))
        return found[0] if found else None

    def matching(self, prefix: str, limit: int, within: Within | None = None) -> Sequence[str]:
        # `{` is the character after `z`, and an id has no greater character. So the range contains exactly the ids with
        # this prefix, and SQLite can use the index.
        wanted = "id >= ? AND id < ?"
        cells: tuple[rows.Cell, ...] = (prefix, prefix + "{")
        if within is not None:
            wanted += " AND (project = ? OR origin IN (SELECT seq FROM session WHERE lineage = ?))"
            cells += (rows.text(within.project), rows.text(within.lineage))
        query = f"SELECT id FROM task WHERE {wanted} ORDER BY seq DESC LIMIT ?"
        return [row[0] for row in self.select(query, (*cells, limit))]

    def with_key(self, project: str, key: str) -> Task | None:
        found = self._tasks(f"{_TASK} WHERE project = ? AND key = ?", (rows.text(project), rows.text(key)))
        return found[0] if found else None

    def running_copies(self, launch: Launch) -> list[str]:
        cells = (to_json(launch.argv), rows.text(launch.cwd), rows.text(launch.project), launch.id)
        return [row[0] for row in self.select(_COPIES, cells)]

    def tasks(self, selection: Selection) -> Sequence[Task]:
        wanted: list[tuple[str, rows.Cell]] = []
        if selection.project is not None:
            wanted.append(("project = ?", rows.text(selection.project)))
        if selection.session is not None:
            wanted.append(("session = ?", rows.text(selection.session)))
        if selection.origin is not None:
            wanted.append(("origin = ?", selection.origin))
        if selection.group is not None:
            wanted.append(("grp = ?", rows.text(selection.group)))
        if selection.since is not None:
            wanted.append(("created_at >= ?", to_micros(selection.since)))
        conditions = [condition for condition, _ in wanted]
        cells = [cell for _, cell in wanted]
        if selection.states:
            marks = ", ".join("?" * len(selection.states))
            current = "SELECT state FROM attempt WHERE attempt.task = task.id AND number = task.attempt"
            conditions.append(f"({current}) IN ({marks})")
            cells.extend(selection.states)
            if set(selection.states) <= set(LIVE):
                conditions.append("id IN (SELECT task FROM attempt WHERE state IN ('queued', 'running'))")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        limit = "" if selection.limit is None else " LIMIT ?"
        cells.extend(() if selection.limit is None else (selection.limit,))
        return self._tasks(f"{_TASK}{where} ORDER BY seq DESC{limit}", tuple(cells))

    def newest(self, limit: int, project: str | None, ran_after: datetime) -> Sequence[Task]:
        of_project = "" if project is None else " WHERE project = ?"
        cells = (() if project is None else (rows.text(project),)) + (limit, to_micros(ran_after))
        # The limit is applied first, because looking up the end of every task of a long history would be slow.
        newest = f"SELECT seq FROM task{of_project} ORDER BY seq DESC LIMIT ?"
        ended = "SELECT ended_at FROM attempt WHERE attempt.task = task.id AND number = task.attempt"
        return self._tasks(f"{_TASK} WHERE seq IN ({newest}) AND ifnull(({ended}) > ?, 1) ORDER BY seq DESC", cells)

    def children(self, parents: Sequence[str]) -> Sequence[str]:
        query = "SELECT id FROM task WHERE parent = ? ORDER BY seq"
        return [row[0] for parent in parents for row in self.select(query, (parent,))]

    def unsettled(self) -> Sequence[Task]:
        return self._tasks(_UNSETTLED, ())

    def running_of(self, origins: Sequence[int], tasks: Sequence[str] = ()) -> list[Task]:
        """Return the tasks that have not ended, oldest first.

        Only tasks that the sessions `origins` launched, and tasks in `tasks`, are returned.
        """
        inside = ", ".join(str(int(origin)) for origin in origins)
        named = ", ".join("?" * len(tasks))
        query = f"{_TASK} WHERE {_LIVE} AND (origin IN ({inside}) OR id IN ({named})) ORDER BY seq"
        return self._tasks(query, tuple(tasks))

    def running_in(self, project: str, origins: Sequence[int]) -> list[tuple[str, int | None]]:
        """Return the ids and launching sessions of tasks that have not ended.

        Only tasks of a project, and tasks that the sessions `origins` launched, are returned.
        """
        inside = ", ".join(str(int(origin)) for origin in origins)
        query = f"SELECT id, origin FROM task WHERE {_LIVE} AND (project = ? OR origin IN ({inside})) ORDER BY seq"
        return [(row[0], row[1]) for row in self.select(query, (rows.text(project),))]

    def history(self, task: str) -> History:
        moves = self.select(
            "SELECT attempt, before, after, at FROM move WHERE task = ? ORDER BY attempt, step",
            (task,),
        )
        seen = self.select("SELECT * FROM evidence WHERE task = ? ORDER BY attempt, number", (task,))
        notices = self.select(
            f"SELECT {_NOTICE_COLUMNS} FROM notice WHERE task = ? ORDER BY attempt, seq",
            (task,),
        )
        return History(
            moves=tuple((n, before, after, from_micros(at)) for n, before, after, at in moves),
            evidence=tuple((row[1], from_micros(row[3]), rows.evidence_from(row[4:])) for row in seen),
            notices=tuple(map(rows.notice_from, notices)),
            deliveries=tuple(
                Delivery(notice=notice, sink=sink, state=state, tries=tries, last_error=error)
                for notice, sink, state, tries, error in self.select(_DELIVERED, (task,))
            ),
        )

    def undelivered(self, before: datetime) -> Sequence[NoticeRow]:
        """Return the notices for sessions from before a given time, oldest first.

        Acknowledged and dismissed notices are left out.
        """
        found = self.select(_UNDELIVERED, (to_micros(before),))
        return [rows.notice_from(row) for row in found]

    def check_integrity(self) -> list[str]:
        """Return the problems that SQLite finds in the file, or an empty list."""
        return [row[0] for row in self.select("PRAGMA integrity_check", ()) if row[0] != "ok"]

    def _tasks(self, query: str, cells: tuple[rows.Cell, ...]) -> list[Task]:
        tasks = []
        for row in self.select(query, cells):
            *launch, newest, lineage = row
            attempts = tuple(map(rows.attempt_from, self.select(_ATTEMPTS, (row[0],))))
            if len(attempts) >= newest:
                tasks.append(Task(launch=rows.launch_from(tuple(launch)), attempts=attempts, lineage=lineage))
            else:
                # Usually the task was deleted after its row was read. If the task is still recorded, the file is
                # damaged.
                self.check_consistent(row[0])
        return tasks

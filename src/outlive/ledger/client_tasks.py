"""The background commands that clients run themselves, as the clients reported."""

from __future__ import annotations

from outlive.domain.sessions.client_task import ClientReport, ClientTask
from outlive.domain.timestamps import from_micros, to_micros
from outlive.ledger import rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from typing import Any

    from outlive.domain.sessions.client_task import Looks
    from outlive.ledger.sqlite import SqliteLedger

_NOTE = """
    INSERT INTO foreign_task
        (origin, client, id, command, description, output, seen_at, cwd, started_at, kind, agent, parent, process)
    SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, process FROM session WHERE seq = ?1
    ON CONFLICT (origin, id) DO UPDATE SET seen_at = excluded.seen_at, state = 'running', absent = NULL,
        unread = NULL, reason = NULL, ended_at = NULL,
        process = excluded.process,
        command = excluded.command, description = coalesce(excluded.description, description),
        output = coalesce(excluded.output, output), cwd = coalesce(excluded.cwd, cwd),
        agent = coalesce(excluded.agent, agent), parent = coalesce(excluded.parent, parent)"""
_COLUMNS = """
    SELECT foreign_task.seq, foreign_task.client, foreign_task.id, command, description, output, foreign_task.process,
        seen_at, absent, cwd, foreign_task.started_at, foreign_task.ended_at, foreign_task.kind, foreign_task.agent,
        foreign_task.parent, unread, reason"""
_OPEN = f"{_COLUMNS} FROM foreign_task WHERE origin = ? AND state = 'running' ORDER BY seq"
_NEWEST = f"""
    {_COLUMNS}, session.id, session.project FROM foreign_task JOIN session ON session.seq = origin
    WHERE foreign_task.started_at IS NOT NULL AND (foreign_task.ended_at IS NOT NULL OR foreign_task.state = 'running')
    ORDER BY foreign_task.seq DESC LIMIT ?"""
_IS_KNOWN = "SELECT 1 FROM foreign_task WHERE origin = ? AND id = ?"
_SET_LOOKS = "UPDATE foreign_task SET absent = ?, unread = ?, reason = ? WHERE seq = ?"
_IS_OPEN = "SELECT 1 FROM foreign_task WHERE seq = ? AND state = 'running'"
_CLOSE = "UPDATE foreign_task SET state = ?, ended_at = ? WHERE seq = ?"
_FORGET = "DELETE FROM foreign_task WHERE state != 'running' AND coalesce(ended_at, seen_at) < ?"
_MOST = 500
_COMMANDS = "SELECT command FROM foreign_task WHERE state = 'running'"
_ADOPTED = "SELECT 1 FROM task WHERE adopted_output = ? LIMIT 1"
_ORIGINS = "SELECT DISTINCT origin FROM foreign_task WHERE state = 'running' ORDER BY origin"


class ClientTasks:
    """The part of the ledger that records commands that clients run in the background."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self._ledger = ledger

    def note(self, origin: int, client: str, seen: ClientReport, now: datetime) -> None:
        """Record that a client reports a command that it runs in the background.

        `origin` is the number of the client's session, and `seen` what the client reported.
        """
        cells = (
            origin,
            client,
            rows.text(seen.id),
            rows.text(seen.command),
            rows.text(seen.description),
            rows.text(seen.output),
            to_micros(now),
            rows.text(seen.cwd),
            to_micros(now),
            seen.kind,
            rows.text(seen.agent),
            rows.text(seen.parent),
        )
        with self._ledger.write():
            self._ledger.db.execute(_NOTE, cells)

    def running(self, origin: int) -> list[ClientTask]:
        """Return a session's background commands that are not known to have ended.

        The client itself runs these commands. `origin` is the number of the session.
        """
        return [_from_row(row) for row in self._ledger.select(_OPEN, (origin,))]

    def is_known(self, origin: int, name: str) -> bool:
        """Return whether a session's client ever reported a background command.

        `name` is the client's id of the command, and `origin` the number of the session.
        """
        return bool(self._ledger.select(_IS_KNOWN, (origin, rows.text(name))))

    def is_open(self, one: ClientTask) -> bool:
        """Return whether a client's background command is still recorded as running."""
        return bool(self._ledger.select(_IS_OPEN, (one.seq,)))

    def newest(self) -> list[tuple[str, str, ClientTask]]:
        """Return the clients' background commands, newest first.

        Commands without a recorded start or with an unknown end are left out. Each command comes with its session and
        the session's project.
        """
        found = self._ledger.select(_NEWEST, (_MOST,))
        return [(rows.from_text(row[-2]), rows.from_text(row[-1]), _from_row(row[:-2])) for row in found]

    def commands(self) -> list[str]:
        """Return the command lines of all commands that clients run in the background."""
        return [rows.from_text(row[0]) for row in self._ledger.select(_COMMANDS)]

    def origins(self) -> list[int]:
        """Return the numbers of the sessions whose clients run background commands."""
        return [row[0] for row in self._ledger.select(_ORIGINS)]

    def is_adopted(self, one: ClientTask) -> bool:
        """Return whether Outlive has taken over a client's background command as a task.

        The task of Outlive may have ended.
        """
        return one.seen.output is not None and bool(self._ledger.select(_ADOPTED, (rows.text(one.seen.output),)))

    def close(self, ones: Sequence[ClientTask], state: str, now: datetime) -> None:
        """Record that clients' background commands have `ended` or are `lost`.

        These commands are not checked again.
        """
        with self._ledger.write():
            for one in ones:
                self._ledger.db.execute(_CLOSE, (state, to_micros(now), one.seq))

    def forget(self, before: datetime) -> None:
        """Delete the records of background commands that ended before a given time.

        These are commands that clients ran themselves.
        """
        with self._ledger.write():
            self._ledger.db.execute(_FORGET, (to_micros(before),))

    def set_looks(self, one: ClientTask, looks: Looks) -> None:
        """Record the result of the latest check whether a child session exists.

        A client's background work may be a child session, which is a session of another agent. Its record stays open
        even if the child session is lost.
        """
        reason = "unobservable" if looks.state == "lost" else None
        with self._ledger.write():
            self._ledger.db.execute(_SET_LOOKS, (looks.absent_since, looks.unread_since, reason, one.seq))

    def set_absent(self, one: ClientTask, since: str | None) -> None:
        """Record since when a client has not listed a background command.

        None means that the client lists it.
        """
        with self._ledger.write():
            self._ledger.db.execute("UPDATE foreign_task SET absent = ? WHERE seq = ?", (since, one.seq))


def _from_row(row: tuple[Any, ...]) -> ClientTask:
    seq, client, id_, command, description, output, process, seen_at, absent, cwd, *rest = row
    started_at, ended_at, kind, agent, parent, unread, reason = rest
    return ClientTask(
        seq=seq,
        client=client,
        seen=ClientReport(
            id=rows.from_text(id_),
            command=rows.from_text(command),
            description=rows.optional(description),
            output=rows.optional(output),
            cwd=rows.optional(cwd),
            kind=kind,
            agent=rows.optional(agent),
            parent=rows.optional(parent),
        ),
        process=process,
        seen_at=from_micros(seen_at),
        absent_since=absent,
        unread_since=unread,
        reason=reason,
        started_at=None if started_at is None else from_micros(started_at),
        ended_at=None if ended_at is None else from_micros(ended_at),
    )

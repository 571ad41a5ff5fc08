"""The sessions in the ledger: their starts and ends, and which continues which."""

from __future__ import annotations

import os

from outlive.domain.ids import lineage_id
from outlive.domain.sessions.session import (
    REPLACES,
    Lineage,
    Session,
    is_minted,
    is_same_boundary,
    predecessor,
    replaces,
)
from outlive.domain.timestamps import from_micros, to_micros
from outlive.ledger import rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from datetime import datetime

    from outlive.domain.sessions.session import SessionStart
    from outlive.ledger.connection import LedgerFile

_COLUMNS = (
    "seq, id, project, lineage, client, source, created_at, boundary, begun_at, begun_tick, begun_by, "
    "ended_at, end_reason, process, transcript, terminal, parent"
)
_SESSION = f"SELECT {_COLUMNS} FROM session"
_HEARD_OF = "SELECT seq, boundary, begun_tick FROM session WHERE project = ? AND id = ?"
_HEARD_OF_ELSEWHERE = "SELECT seq, boundary, begun_tick FROM session WHERE id = ? ORDER BY seq DESC LIMIT 1"
_ACTED = "UPDATE session SET begun_tick = NULL WHERE seq = ? AND begun_tick IS NOT NULL"
_NEXT_RANK = "(SELECT coalesce(max(rank), 0) + 1 FROM session newer WHERE newer.project = {})"
_INSERT = f"""
    INSERT INTO session (id, project, lineage, created_at, rank)
    VALUES (?1, ?2, ?3, ?4, {_NEXT_RANK.format("?2")})"""
# A compaction of the session's context does not change the client's process. So the recorded process is kept if the
# client does not name the process again.
_BEGIN = f"""
    UPDATE session SET client = coalesce(:client, client), source = :source, boundary = boundary + 1,
        begun_at = :at, begun_tick = :tick, begun_by = :lease,
        process = iif(:source = 'compact', coalesce(:process, process), :process),
        transcript = coalesce(:transcript, transcript), terminal = coalesce(:terminal, terminal),
        ended_at = NULL, end_reason = NULL, gated = NULL, rank = {_NEXT_RANK.format("session.project")}
    WHERE seq = :seq"""
# A session stays the child of the task in which it was first seen.
_SET_PARENT = """
    UPDATE session SET parent = (SELECT origin FROM task WHERE id = ?1 AND origin <> ?2)
    WHERE seq = ?2 AND parent IS NULL"""
# The sessions that were launched by tasks of the given sessions, directly or not, and that meet a condition.
_DESCENDANTS = """
    WITH RECURSIVE below (seq) AS (
        SELECT seq FROM session WHERE parent IN ({})
        UNION SELECT session.seq FROM session JOIN below ON session.parent = below.seq)
    SELECT below.seq FROM below WHERE {} ORDER BY below.seq"""
_IS_BUSY = """
    (EXISTS (SELECT 1 FROM notice WHERE origin = {0}.seq AND state IN ('pending', 'claimed', 'presented'))
    OR {0}.seq IN (
        SELECT origin FROM task WHERE id IN (SELECT task FROM attempt WHERE state IN ('queued', 'running'))))"""
_END = "UPDATE session SET ended_at = ?, end_reason = ? WHERE seq = ? AND ended_at IS NULL"
_MERGE = "UPDATE session SET lineage = ? WHERE lineage = ?"
_CONTINUE = "INSERT OR IGNORE INTO continuation (predecessor, heir, evidence, replaces) VALUES (?, ?, ?, ?)"
_HEIRS = """
    SELECT continuation.predecessor, continuation.heir FROM continuation JOIN session ON session.seq = heir
    WHERE session.lineage = ? ORDER BY continuation.replaces DESC, continuation.seq"""
_FOREIGN = """
    SELECT 1 FROM foreign_task JOIN session ON session.seq = origin
    WHERE foreign_task.state = 'running' AND session.project = ? LIMIT 1"""
# The number of a project's newest sessions that are searched for the session that a new one continues. An older session
# is found only if the client names it.
_RECENT = 200


class Sessions:
    """The part of the ledger that records sessions."""

    def __init__(self, ledger: LedgerFile) -> None:
        self._ledger = ledger

    def heard_of(self, session: str, project: str, now: datetime) -> tuple[int, int]:
        """Return a launching session's number, and how often it began anew.

        A session begins anew at a start, a resumption or a compaction.

        A session that is not in the ledger yet is recorded. If the client, and not a person, made the session's name,
        the name means the same session in every directory.
        """
        name, place = rows.text(session), rows.text(project)
        found = self._ledger.select(_HEARD_OF, (place, name))
        if not found and is_minted(session):
            found = self._ledger.select(_HEARD_OF_ELSEWHERE, (name,))
        if found:
            seq, boundary, tick = found[0]
            if tick is not None:
                self.has_acted(seq)
            return seq, boundary
        with self._ledger.write():
            return self._insert(session, project, now), 0

    def _insert(self, session: str, project: str, now: datetime) -> int:
        cells = (rows.text(session), rows.text(project), lineage_id(os.urandom(8)), to_micros(now))
        self._ledger.db.execute(_INSERT, cells)
        return self._ledger.db.last_insert_rowid()

    def set_parent(self, seq: int, task: str | None) -> None:
        """Record the task that launched a session, unless such a task is recorded already."""
        if task is not None:
            with self._ledger.write():
                self._ledger.db.execute(_SET_PARENT, (task, seq))

    def has_acted(self, seq: int) -> None:
        """Record that a session has acted, so that its next beginning is a new one.

        Otherwise the next report of a beginning may count as a repetition of the last one.
        """
        with self._ledger.write():
            self._ledger.db.execute(_ACTED, (seq,))

    def has_been_told(self, seq: int, lease: str) -> None:
        """Record that a session has received its hand-off.

        `lease` is the lock of the process that delivered the hand-off.
        """
        with self._ledger.write():
            self._ledger.db.execute("UPDATE session SET begun_by = NULL WHERE seq = ? AND begun_by = ?", (seq, lease))

    def find(self, session: str, project: str) -> Session | None:
        """Return the session of this name.

        If the client, and not a person, made the name, the session may be in any project.
        """
        name = rows.text(session)
        found = self._sessions(f"{_SESSION} WHERE project = ? AND id = ?", (rows.text(project), name))
        if not found and is_minted(session):
            found = self._sessions(f"{_SESSION} WHERE id = ? ORDER BY seq DESC LIMIT 1", (name,))
        return found[0] if found else None

    def begin(
        self, begun: SessionStart, now: datetime, is_over: Callable[[Session], bool], is_held: Callable[[str], bool]
    ) -> tuple[Session, Session | None, str | None]:
        """Record that a session begins, or begins anew after a resumption or compaction.

        `is_over` returns whether a session has ended, and `is_held` whether the process with a given lock still runs.
        Returns three values: the session, the session that it continues, and the evidence for this continuation. A
        beginning that a client reports twice is recorded once.
        """
        with self._ledger.write():
            known = self.find(begun.id, begun.project)
            if known is not None:
                begun = begun.but(project=known.project)  # a name made by the client means the same session everywhere
                if is_same_boundary(begun, known, is_held):
                    return known, None, "same boundary"
            found = predecessor(begun, known, self._candidates(begun), is_over)
            seq = known.seq if known else self._insert(begun.id, begun.project, now)
            if found is not None:
                before, evidence = found
                self._ledger.db.execute(_CONTINUE, (before.seq, seq, evidence, begun.source in REPLACES))
                self._ledger.db.execute(_MERGE, (before.lineage, self.get(seq).lineage))
                if replaces(begun, before):
                    self._ledger.db.execute(_END, (to_micros(now), "continued", before.seq))
            cells = {
                "client": rows.sentence(begun.client),
                "source": begun.source,
                "at": to_micros(begun.at or now),
                "tick": begun.tick,
                "lease": begun.lease,
                "process": begun.process,
                "transcript": rows.text(begun.transcript),
                "terminal": rows.text(begun.terminal),
                "seq": seq,
            }
            self._ledger.db.execute(_BEGIN, cells)
            self.set_parent(seq, begun.parent)
            return self.get(seq), *(found or (None, None))

    def _candidates(self, begun: SessionStart) -> Sequence[Session]:
        cells = (rows.text(begun.project), rows.text(begun.continues))
        named = self._sessions(f"{_SESSION} WHERE project = ? AND id = ?", cells) if begun.continues else []
        return [*named, *self.of_project(begun.project, _RECENT)]

    def end(self, seq: int, reason: str | None, now: datetime) -> bool:
        """Record that a session has ended. Return False if its end was recorded before."""
        with self._ledger.write():
            self._ledger.db.execute(_END, (to_micros(now), rows.sentence(reason), seq))
            return self._ledger.db.changes() == 1

    def lineage(self, lineage: str) -> Lineage:
        """Return the sessions that continue each other, and which continues which.

        `lineage` is the name of this chain of sessions.
        """
        sessions = self._sessions(f"{_SESSION} WHERE lineage = ? ORDER BY seq", (lineage,))
        heirs: dict[int, list[int]] = {}
        for before, heir in self._ledger.select(_HEIRS, (lineage,)):
            heirs.setdefault(before, []).append(heir)
        return Lineage(sessions={session.seq: session for session in sessions}, heirs=heirs)

    def descendants(self, seqs: Collection[int]) -> list[int]:
        """Return the busy sessions that tasks of the given sessions launched.

        Sessions that tasks of these launched sessions launched are included, at any depth. A session is busy if it has
        a task that has not ended, or a notice that is not acknowledged or dismissed.
        """
        inside = ", ".join(str(int(seq)) for seq in seqs)
        found = self._ledger.select(_DESCENDANTS.format(inside, _IS_BUSY.format("below")))
        return [row[0] for row in found if row[0] not in seqs]

    def are_busy(self, seqs: Collection[int]) -> bool:
        """Return whether one of the sessions has unfinished business.

        This is a task that has not ended, or a notice that is not acknowledged or dismissed.
        """
        inside = ", ".join(str(int(seq)) for seq in seqs)
        is_busy = f"SELECT 1 FROM session WHERE seq IN ({inside}) AND {_IS_BUSY.format('session')} LIMIT 1"
        return bool(seqs and self._ledger.select(is_busy))

    def of_project(self, project: str, limit: int) -> list[Session]:
        """Return the sessions of a project. The session that began last is the first."""
        query = f"{_SESSION} WHERE project = ? ORDER BY rank DESC LIMIT ?"
        return self._sessions(query, (rows.text(project), limit))

    def newest(self, limit: int) -> list[Session]:
        """Return the sessions of every project, newest first."""
        return self._sessions(f"{_SESSION} ORDER BY seq DESC LIMIT ?", (limit,))

    def run_their_own(self, project: str) -> bool:
        """Return whether clients run background commands themselves in a project."""
        return bool(self._ledger.select(_FOREIGN, (rows.text(project),)))

    def boundary_of(self, seq: int) -> int:
        """Return how often a session began anew, by a resumption or a compaction."""
        return int(self._ledger.select("SELECT boundary FROM session WHERE seq = ?", (seq,))[0][0])

    def gated(self, seq: int) -> str | None:
        """Return since when the gate has asked a session to wait.

        Returns None if the gate does not ask the session to wait.
        """
        found = self._ledger.select("SELECT gated FROM session WHERE seq = ?", (seq,))
        return found[0][0] if found else None

    def set_gated(self, seq: int, since: str | None) -> None:
        """Record since when the gate asks a session to wait.

        None means that the gate no longer asks the session to wait.
        """
        with self._ledger.write():
            self._ledger.db.execute(
                "UPDATE session SET gated = ? WHERE seq = ? AND gated IS NOT ?", (since, seq, since)
            )

    def get(self, seq: int) -> Session:
        """Return the session with this number, which must exist."""
        return self._sessions(f"{_SESSION} WHERE seq = ?", (seq,))[0]

    def _sessions(self, query: str, cells: tuple[rows.Cell, ...]) -> list[Session]:
        return [_session_from(row) for row in self._ledger.select(query, cells)]


def _session_from(row: rows.Row) -> Session:
    seq, id_, project, lineage, client, source, created, boundary, begun, tick, lease, *rest = row
    ended, end_reason, process, transcript, terminal, parent = rest
    return Session(
        seq=seq,
        id=rows.from_text(id_),
        project=rows.from_text(project),
        lineage=lineage,
        client=client,
        source=source,
        created_at=from_micros(created),
        boundary=boundary,
        begun_at=rows.moment(begun),
        begun_tick=tick,
        begun_by=lease,
        ended_at=rows.moment(ended),
        end_reason=end_reason,
        process=process,
        transcript=rows.optional(transcript),
        terminal=rows.optional(terminal),
        parent=parent,
    )

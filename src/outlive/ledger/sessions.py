"""The sessions in the ledger: who began, who ended, who continues whom."""

from __future__ import annotations

import os

from outlive.domain.ids import lineage_id
from outlive.domain.session import REPLACES, Lineage, Session, is_minted, is_same_boundary, predecessor, replaces
from outlive.domain.when import from_micros, to_micros
from outlive.ledger import rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from outlive.domain.session import Begun
    from outlive.ledger.connection import LedgerFile

_COLUMNS = (
    "seq, id, project, lineage, client, source, created_at, boundary, begun_at, begun_tick, begun_by, "
    "ended_at, end_reason, process, transcript, terminal"
)
_SESSION = f"SELECT {_COLUMNS} FROM session"
_HEARD_OF = "SELECT seq, boundary, begun_tick FROM session WHERE project = ? AND id = ?"
_HEARD_OF_ELSEWHERE = "SELECT seq, boundary, begun_tick FROM session WHERE id = ? ORDER BY seq DESC LIMIT 1"
_ACTED = "UPDATE session SET begun_tick = NULL WHERE seq = ? AND begun_tick IS NOT NULL"
_NEXT_RANK = "(SELECT coalesce(max(rank), 0) + 1 FROM session newer WHERE newer.project = {})"
_INSERT = f"""
    INSERT INTO session (id, project, lineage, created_at, rank)
    VALUES (?1, ?2, ?3, ?4, {_NEXT_RANK.format("?2")})"""
# Compacting does not change the process, whether or not the client names it again.
_BEGIN = f"""
    UPDATE session SET client = coalesce(:client, client), source = :source, boundary = boundary + 1,
        begun_at = :at, begun_tick = :tick, begun_by = :lease,
        process = iif(:source = 'compact', coalesce(:process, process), :process),
        transcript = coalesce(:transcript, transcript), terminal = coalesce(:terminal, terminal),
        ended_at = NULL, end_reason = NULL, gated = NULL, rank = {_NEXT_RANK.format("session.project")}
    WHERE seq = :seq"""
_END = "UPDATE session SET ended_at = ?, end_reason = ? WHERE seq = ? AND ended_at IS NULL"
_MERGE = "UPDATE session SET lineage = ? WHERE lineage = ?"
_CONTINUE = "INSERT OR IGNORE INTO continuation (predecessor, heir, evidence, replaces) VALUES (?, ?, ?, ?)"
_HEIRS = """
    SELECT continuation.predecessor, continuation.heir FROM continuation JOIN session ON session.seq = heir
    WHERE session.lineage = ? ORDER BY continuation.replaces DESC, continuation.seq"""
_FOREIGN = """
    SELECT 1 FROM foreign_task JOIN session ON session.seq = origin
    WHERE foreign_task.state = 'running' AND session.project = ? LIMIT 1"""
# How far back a predecessor is looked for; it is among the newest, or it was named.
_RECENT = 200


class Sessions:
    """The part of the ledger that knows sessions."""

    def __init__(self, ledger: LedgerFile) -> None:
        self._ledger = ledger

    def heard_of(self, session: str, project: str, now: datetime) -> tuple[int, int]:
        """The session that a launch belongs to, and its boundary; recorded if it is new here.

        A client's own name for it is the same session wherever its command was run from.
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

    def has_acted(self, seq: int) -> None:
        """A session has done something since it began: if it begins once more, that is another boundary."""
        with self._ledger.write():
            self._ledger.db.execute(_ACTED, (seq,))

    def has_been_told(self, seq: int, lease: str) -> None:
        """A session has been told what it should know at its beginning."""
        with self._ledger.write():
            self._ledger.db.execute("UPDATE session SET begun_by = NULL WHERE seq = ? AND begun_by = ?", (seq, lease))

    def find(self, session: str, project: str) -> Session | None:
        """A session by its name, as seen from a project."""
        name = rows.text(session)
        found = self._sessions(f"{_SESSION} WHERE project = ? AND id = ?", (rows.text(project), name))
        if not found and is_minted(session):
            found = self._sessions(f"{_SESSION} WHERE id = ? ORDER BY seq DESC LIMIT 1", (name,))
        return found[0] if found else None

    def begin(
        self, begun: Begun, now: datetime, is_over: Callable[[Session], bool], is_held: Callable[[str], bool]
    ) -> tuple[Session, Session | None, str | None]:
        """Record that a session begins, or goes on after a boundary; whom it continues, and by what evidence.

        The same boundary told twice changes nothing.
        """
        with self._ledger.write():
            known = self.find(begun.id, begun.project)
            if known is not None:
                begun = begun.but(project=known.project)  # a client's name for it is the same everywhere
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
            return self.get(seq), *(found or (None, None))

    def _candidates(self, begun: Begun) -> Sequence[Session]:
        cells = (rows.text(begun.project), rows.text(begun.continues))
        named = self._sessions(f"{_SESSION} WHERE project = ? AND id = ?", cells) if begun.continues else []
        return [*named, *self.of_project(begun.project, _RECENT)]

    def end(self, seq: int, reason: str | None, now: datetime) -> bool:
        """Record that a session is over; False if that was known."""
        with self._ledger.write():
            self._ledger.db.execute(_END, (to_micros(now), rows.sentence(reason), seq))
            return self._ledger.db.changes() == 1

    def lineage(self, lineage: str) -> Lineage:
        """The sessions of a lineage and who continues whom."""
        sessions = self._sessions(f"{_SESSION} WHERE lineage = ? ORDER BY seq", (lineage,))
        heirs: dict[int, list[int]] = {}
        for before, heir in self._ledger.select(_HEIRS, (lineage,)):
            heirs.setdefault(before, []).append(heir)
        return Lineage(sessions={session.seq: session for session in sessions}, heirs=heirs)

    def of_project(self, project: str, limit: int) -> list[Session]:
        """The sessions of a project, those first that began last."""
        query = f"{_SESSION} WHERE project = ? ORDER BY rank DESC LIMIT ?"
        return self._sessions(query, (rows.text(project), limit))

    def newest(self, limit: int) -> list[Session]:
        """The sessions of every project, newest first."""
        return self._sessions(f"{_SESSION} ORDER BY seq DESC LIMIT ?", (limit,))

    def run_their_own(self, project: str) -> bool:
        """Whether the clients of sessions here were last heard to run something by themselves."""
        return bool(self._ledger.select(_FOREIGN, (rows.text(project),)))

    def boundary_of(self, seq: int) -> int:
        """How many boundaries a session has crossed."""
        return int(self._ledger.select("SELECT boundary FROM session WHERE seq = ?", (seq,))[0][0])

    def gated(self, seq: int) -> str | None:
        """Since when a session has been asked to wait, as the gate wrote it down."""
        found = self._ledger.select("SELECT gated FROM session WHERE seq = ?", (seq,))
        return found[0][0] if found else None

    def set_gated(self, seq: int, since: str | None) -> None:
        """Write down since when a session is asked to wait; None when it is not any more."""
        with self._ledger.write():
            self._ledger.db.execute(
                "UPDATE session SET gated = ? WHERE seq = ? AND gated IS NOT ?", (since, seq, since)
            )

    def get(self, seq: int) -> Session:
        """A session by its number, which must exist."""
        return self._sessions(f"{_SESSION} WHERE seq = ?", (seq,))[0]

    def _sessions(self, query: str, cells: tuple[rows.Cell, ...]) -> list[Session]:
        return [_session_from(row) for row in self._ledger.select(query, cells)]


def _session_from(row: rows.Row) -> Session:
    seq, id_, project, lineage, client, source, created, boundary, begun, tick, lease, *rest = row
    ended, end_reason, process, transcript, terminal = rest
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
    )

"""The endings of a project that no open session receives.

A session is open until the session, or its client's process, is known to have ended. The next session that begins in
the project gets a report of these endings.
"""

from __future__ import annotations

from outlive.domain.notices.notice import MOST_PRESENTATIONS
from outlive.domain.value import Value
from outlive.ledger import rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from outlive.ledger.sqlite import SqliteLedger

_OPEN = "notice.state IN ('pending', 'claimed', 'presented')"
# Only the newest attempt counts: after a retry, the end of the earlier attempt is not the ending of the task any more.
_ENDINGS = """
    FROM notice JOIN task ON task.id = notice.task AND task.attempt = notice.attempt
    JOIN attempt ON attempt.task = notice.task AND attempt.number = notice.attempt
    WHERE notice.kind IN ('ended', 'lost')"""


class UnheardEnding(Value):
    """A selection of a project's endings that may be reported to a new session."""

    project: str
    origins: tuple[int, ...]
    """The sessions that no open session continues."""
    kept: tuple[str, ...] = ()
    """Tasks of the sessions in `origins` whose endings another open session receives. These tasks are left out."""
    claimers: tuple[str, ...] = ()
    """Leases whose processes still run. Notices that are claimed for these leases are being delivered now."""
    others: tuple[int, ...] = ()
    """Open sessions to which some of the endings were presented."""
    only: tuple[int, ...] | None = None
    """If given, only endings are selected that were presented to one of these sessions and not confirmed."""


class UnheardEndings:
    """The part of the ledger that finds endings that no open session receives."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self._ledger = ledger

    def origins(self, project: str) -> list[int]:
        """Return the sessions of a project with an ending that is not acknowledged."""
        query = f"SELECT DISTINCT origin FROM notice WHERE project = ? AND {_OPEN}"
        return [row[0] for row in self._ledger.select(query, (rows.text(project),))]

    def told_to(self, project: str, origins: Collection[int]) -> list[int]:
        """Return the sessions to which open notices of the given sessions were presented."""
        return self._distinct("presented_to", project, origins)

    def claimers(self, project: str, origins: Collection[int]) -> list[str]:
        """Return the leases in whose name open notices of the given sessions are claimed."""
        return self._distinct("claimer", project, origins)

    def shown(self, origins: Collection[int]) -> list[str]:
        """Return these sessions' tasks that were shown to another session as running.

        Only tasks with an open notice are returned.
        """
        query = f"""
            SELECT DISTINCT shown.task FROM shown JOIN notice ON notice.task = shown.task
            WHERE notice.origin IN ({_listed(origins)}) AND {_OPEN}"""
        return [row[0] for row in self._ledger.select(query)]

    def count(self, unheard: UnheardEnding) -> tuple[int, int]:
        """Return the number of selected endings, and how many tasks did not succeed."""
        where, cells = _where(unheard)
        query = f"SELECT count(*), coalesce(sum(attempt.state <> 'succeeded'), 0) {_ENDINGS} AND {where}"
        ended, failed = self._ledger.select(query, cells)[0]
        return ended, failed

    def first(self, unheard: UnheardEnding, limit: int) -> list[str]:
        """Return at most `limit` tasks of the selected endings.

        Tasks that did not succeed come before tasks that succeeded. Within each of these two groups, newer tasks come
        first.
        """
        where, cells = _where(unheard)
        order = "ORDER BY attempt.state = 'succeeded', notice.seq DESC LIMIT ?"
        return [
            row[0] for row in self._ledger.select(f"SELECT notice.task {_ENDINGS} AND {where} {order}", (*cells, limit))
        ]

    def claim(self, unheard: UnheardEnding, claimer: str) -> None:
        """Claim all selected notices in the name of a valid lease."""
        where, cells = _where(unheard)
        with self._ledger.write():
            self._ledger.db.execute(
                f"UPDATE notice SET state = 'claimed', claimer = ? WHERE {where}", (claimer, *cells)
            )

    def _distinct(self, column: str, project: str, origins: Collection[int]) -> list[Any]:
        query = f"""
            SELECT DISTINCT {column} FROM notice
            WHERE project = ? AND {_OPEN} AND origin IN ({_listed(origins)}) AND {column} IS NOT NULL"""
        return [row[0] for row in self._ledger.select(query, (rows.text(project),))]


def _where(unheard: UnheardEnding) -> tuple[str, tuple[rows.Cell, ...]]:
    """Return the SQL condition that selects the notices, and its cells."""
    where = f"""
        notice.project = ? AND {_OPEN} AND notice.origin IN ({_listed(unheard.origins)})
        AND notice.task NOT IN ({_places(unheard.kept)})
        AND (notice.state = 'pending'
            OR (notice.state = 'claimed' AND notice.claimer NOT IN ({_places(unheard.claimers)}))
            OR (notice.state = 'presented' AND notice.tries < {MOST_PRESENTATIONS}
                AND notice.presented_to NOT IN ({_listed(unheard.others)})))"""
    if unheard.only is not None:
        where += f" AND notice.state = 'presented' AND notice.presented_to IN ({_listed(unheard.only)})"
    return where, (rows.text(unheard.project), *unheard.kept, *unheard.claimers)


def _listed(numbers: Collection[int]) -> str:
    return ", ".join(str(int(number)) for number in numbers)


def _places(cells: Collection[str]) -> str:
    return ", ".join("?" * len(cells))

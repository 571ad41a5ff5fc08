"""The ended tasks of a project whose notice no open session receives.

A session is open until the session, or its client's process, is known to have ended. The next session that begins in
the project gets a report of these tasks.
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
# Only the newest attempt counts, because after a retry the task has not ended with the earlier attempt.
_ENDINGS = """
    FROM notice JOIN task ON task.id = notice.task AND task.attempt = notice.attempt
    JOIN attempt ON attempt.task = notice.task AND attempt.number = notice.attempt
    WHERE notice.kind IN ('ended', 'lost')"""


class UnheardEnding(Value):
    """A selection of a project's ended tasks to report to a new session."""

    project: str
    origins: tuple[int, ...]
    """The sessions that launched the tasks, and that no open session continues."""
    kept: tuple[str, ...] = ()
    """Tasks of the sessions in `origins` that are left out.

    Another open session receives their notices.
    """
    claimers: tuple[str, ...] = ()
    """Locks of running processes that are delivering some of the notices now."""
    others: tuple[int, ...] = ()
    """Open sessions to which some of the notices were presented."""
    only: tuple[int, ...] | None = None
    """Sessions that may have missed notices which were presented to them.

    If given, only tasks are selected whose notice was presented to one of these sessions and not confirmed.
    """


class UnheardEndings:
    """The part of the ledger that finds ended tasks which no open session hears of."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self._ledger = ledger

    def origins(self, project: str) -> list[int]:
        """Return the sessions of a project with a notice that is not acknowledged."""
        query = f"SELECT DISTINCT origin FROM notice WHERE project = ? AND {_OPEN}"
        return [row[0] for row in self._ledger.select(query, (rows.text(project),))]

    def told_to(self, project: str, origins: Collection[int]) -> list[int]:
        """Return the sessions to which notices of the given sessions were presented.

        Only notices that are not acknowledged or dismissed count. `origins` are the given sessions.
        """
        return self._distinct("presented_to", project, origins)

    def claimers(self, project: str, origins: Collection[int]) -> list[str]:
        """Return the locks of the processes that reserved notices of given sessions.

        Only notices that are not acknowledged or dismissed count. `origins` are the given sessions.
        """
        return self._distinct("claimer", project, origins)

    def shown(self, origins: Collection[int]) -> list[str]:
        """Return tasks of given sessions of which another session was told.

        The other session was told that the task was running. Only tasks with a notice that is not acknowledged or
        dismissed are returned.
        """
        query = f"""
            SELECT DISTINCT shown.task FROM shown JOIN notice ON notice.task = shown.task
            WHERE notice.origin IN ({_listed(origins)}) AND {_OPEN}"""
        return [row[0] for row in self._ledger.select(query)]

    def count(self, unheard: UnheardEnding) -> tuple[int, int]:
        """Return how many tasks are selected, and how many of them did not succeed."""
        where, cells = _where(unheard)
        query = f"SELECT count(*), coalesce(sum(attempt.state <> 'succeeded'), 0) {_ENDINGS} AND {where}"
        ended, failed = self._ledger.select(query, cells)[0]
        return ended, failed

    def first(self, unheard: UnheardEnding, limit: int) -> list[str]:
        """Return at most `limit` of the selected tasks.

        Tasks that did not succeed come before tasks that succeeded. Within each of these two groups, newer tasks come
        first.
        """
        where, cells = _where(unheard)
        order = "ORDER BY attempt.state = 'succeeded', notice.seq DESC LIMIT ?"
        return [
            row[0] for row in self._ledger.select(f"SELECT notice.task {_ENDINGS} AND {where} {order}", (*cells, limit))
        ]

    def claim(self, unheard: UnheardEnding, claimer: str) -> None:
        """Reserve all selected notices for one process, so that no other presents them.

        `claimer` names the lock of the process.
        """
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
    """Return the SQL condition that selects the notices, and its parameters."""
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

"""The agent tasks in the ledger: their client sessions and unavailable models."""

from __future__ import annotations

from outlive.domain.timestamps import from_micros, timedelta, to_micros
from outlive.ledger import rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from outlive.ledger.sqlite import SqliteLedger

_REMEMBERED = timedelta(hours=6)
_AT_LEAST = timedelta(minutes=2)
_UNAVAILABLE = """
    SELECT agent, settled_at FROM attempt INDEXED BY attempt_unavailable
    WHERE agent IS NOT NULL AND json_extract(agent, '$.agent_class') = 'unavailable' AND settled_at > ?"""

_WORKING = """
    SELECT task FROM attempt INDEXED BY attempt_agent_session
    WHERE agent IS NOT NULL AND json_extract(agent, '$.session') = ? AND json_extract(agent, '$.client') = ?
    AND settled_at IS NULL AND task <> ? LIMIT 1"""

_NEWEST = """
    SELECT task, number FROM attempt INDEXED BY attempt_agent_session
    WHERE agent IS NOT NULL AND json_extract(agent, '$.session') = ? AND json_extract(agent, '$.client') = ?
    ORDER BY created_at DESC LIMIT 1"""

_OF_SESSION = """
    SELECT task FROM attempt INDEXED BY attempt_agent_session
    WHERE agent IS NOT NULL AND json_extract(agent, '$.session') = ? ORDER BY created_at DESC LIMIT 1"""


class AgentAttempts:
    """The part of the ledger that finds attempts of agent tasks."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self._ledger = ledger

    def unavailable(self, now: datetime) -> set[tuple[str, str | None]]:
        """Return the clients and models that were found unavailable lately.

        A model counts as unavailable for the time that its provider has named (`retry_after_s`), but for at least two
        minutes and at most six hours.
        """
        found = set()
        for cell, settled in self._ledger.select(_UNAVAILABLE, (to_micros(now - _REMEMBERED),)):
            result = rows.agent_from(cell)
            if result is not None:
                pause = max(_AT_LEAST, timedelta(seconds=min(result.retry_after_s or 0.0, 86400.0)))
                if from_micros(settled) + pause > now:
                    found.add((result.client, result.asked))
        return found

    def task_in_session(self, client: str, session: str, except_task: str) -> str | None:
        """Return a task that works, or will work, in a session of a client.

        The task `except_task` is left out. Returns None if there is no such task.
        """
        found = self._ledger.select(_WORKING, (session, client, except_task))
        return str(found[0][0]) if found else None

    def newest_in_session(self, client: str, session: str) -> tuple[str, int] | None:
        """Return the task and the number of the newest attempt in a client's session.

        Returns None if the ledger has no attempt in this session.
        """
        found = self._ledger.select(_NEWEST, (session, client))
        return (str(found[0][0]), int(found[0][1])) if found else None

    def task_of_session(self, session: str) -> str | None:
        """Return the task of the newest attempt in a client's session.

        Returns None if the ledger has no attempt in this session.
        """
        found = self._ledger.select(_OF_SESSION, (session,))
        return str(found[0][0]) if found else None

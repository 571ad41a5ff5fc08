"""A glance at the ledger: reading for somebody who only pressed a key.

Whoever opens the ledger makes it if it is missing, upgrades an old one, moves a broken one aside,
and waits ten seconds for a lock. That is right for a command, which says what it did. Nobody reads
what happened behind a completion, so a glance changes nothing, waits for nobody, and fails instead.
"""

from __future__ import annotations

import os

from outlive.domain.errors import Unavailable
from outlive.ledger import forking
from outlive.ledger.opening import SCHEMA_VERSION, apsw, translated
from outlive.ledger.sqlite import SqliteLedger

_PATIENCE_MS = 100


class Glance(SqliteLedger):
    """The ledger as it is on disk now, to be read and left alone."""

    def __init__(self, path: str) -> None:
        # Also a FIFO or a device in its place, which SQLite would open, and wait.
        if not os.path.isfile(path):
            raise Unavailable(f"there is no ledger {path}", "the first `outlive run` makes it")
        self._path = path
        self._log_pages = 0
        forking.enter()
        try:
            self.db = _read_only(path)
        except BaseException:
            forking.leave()
            raise

    def failure(self, error: apsw.Error) -> Exception:
        """The error as its reader can act on it; nothing is moved aside."""
        return translated(error, self._path)


def _read_only(path: str) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_NOFOLLOW
    connection = apsw.Connection(path, flags=flags)
    try:
        connection.set_busy_timeout(_PATIENCE_MS)
        if connection.pragma("user_version") != SCHEMA_VERSION:
            raise Unavailable(f"the ledger {path} is of another version", "any other command says more")
    except BaseException:
        connection.close()
        raise
    return connection

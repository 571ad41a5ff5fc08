"""A read-only view of the ledger, for shell completion.

Shell completion cannot show a message, for example that it created, upgraded or moved a ledger. So this module changes
no file, waits at most 100 ms, and raises an error if it cannot read the ledger.
"""

from __future__ import annotations

import os

from outlive.domain.errors import Unavailable
from outlive.ledger import fork_safety
from outlive.ledger.open_ledger import SCHEMA_VERSION, apsw, translated
from outlive.ledger.sqlite import SqliteLedger

_PATIENCE_MS = 100


class ReadOnlyLedger(SqliteLedger):
    """The ledger, opened only for reading."""

    def __init__(self, path: str) -> None:
        # Check this first, because SQLite would also open a FIFO or a device at this path, and block.
        if not os.path.isfile(path):
            raise Unavailable(f"there is no ledger {path}", "the first `outlive run` creates it")
        self._path = path
        self.log_pages = 0
        fork_safety.enter()
        try:
            self.db = _read_only(path)
        except BaseException:
            fork_safety.leave()
            raise

    def failure(self, error: apsw.Error) -> Exception:
        """Return the error with a hint for the user. Leave a damaged ledger in place."""
        return translated(error, self._path)


def _read_only(path: str) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_NOFOLLOW
    connection = apsw.Connection(path, flags=flags)
    try:
        connection.set_busy_timeout(_PATIENCE_MS)
        if connection.pragma("user_version") != SCHEMA_VERSION:
            raise Unavailable(
                f"the ledger {path} is of another version",
                "run another command, for example `outlive list`, to see the reason",
            )
    except BaseException:
        connection.close()
        raise
    return connection

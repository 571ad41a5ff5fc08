"""One open ledger file: reading, write transactions and closing."""

from __future__ import annotations

import os

from outlive.domain.errors import LedgerIncomplete
from outlive.ledger import completeness, fork_safety, open_ledger
from outlive.ledger.open_ledger import SCHEMA_VERSION, apsw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Self

    from outlive.ledger import rows


_is_hurrying = False
_kept: LedgerFile | None = None


def hurry(patience_s: float) -> None:
    """Keep the ledger open, and limit the wait for locks, in this process.

    For a process that a client waits for: only one of its threads may use the ledger. `patience_s` is the time to wait
    for other processes' locks, in total. `stop_hurrying` ends both, and so does a fork in the child.
    """
    global _is_hurrying  # noqa: PLW0603 - a fact about this process
    _is_hurrying = True
    open_ledger.be_impatient(patience_s)


def stop_hurrying() -> None:
    """Close the ledger after each use again, and wait for locks as usual."""
    global _is_hurrying, _kept
    if _kept is not None:
        _kept.close_resting()
    _is_hurrying, _kept = False, None
    open_ledger.be_impatient(None)


# A forked child may run for days, and no client waits for it, so it may wait for locks as usual. The fork has
# already closed the kept ledger.
os.register_at_fork(after_in_child=stop_hurrying)


class LedgerFile:
    """A connection to the ledger, used by one thread at a time."""

    db: apsw.Connection
    _lender: LedgerFile | None = None
    """The kept ledger whose connection this ledger shares; None if it has its own."""
    _uses = 1
    """How many open ledgers use this ledger's own connection."""

    def __init__(self, path: str, now: datetime, *, create: bool = True) -> None:
        """Open the ledger, and restore it first if it is incomplete.

        A keeper passes `create=False`, because a new ledger would not have the keeper's row. An incomplete ledger then
        raises `LedgerIncomplete`, as it does without a restorer.
        """
        self._path = path
        self._now = now
        self._may_create = create
        self.log_pages = 0
        try:
            self._open()
        except LedgerIncomplete:
            if not create or not completeness.restore(self._path):
                raise
            self._open()

    def _open(self) -> None:
        if _kept is not None and _kept.lend(self._path):
            self._lender = _kept
            self.db = _kept.db
        else:
            self._lender = None
            self._connect()
        if self._may_create:
            try:
                self.check_complete()
            except BaseException:
                self.close()
                raise

    def _connect(self) -> None:
        global _kept  # noqa: PLW0603
        fork_safety.enter()
        try:
            # Read the file's identity before opening. If the file is replaced in between, the connection counts as one
            # to the old file, and the ledger is opened again.
            self._place = _place_of(self._path)
            self.db = open_ledger.connect(self._path, self._now, create=self._may_create)
            self.db.set_wal_hook(self._committed)
        except BaseException:
            fork_safety.leave()
            raise
        self._uses = 1
        if _is_hurrying:
            _kept = self

    def check_complete(self) -> None:
        """Raise `LedgerIncomplete` if tasks of the state directory are not in this ledger."""
        if not completeness.is_restoring() and not self.is_complete():
            raise LedgerIncomplete.at(self._path)

    def is_complete(self) -> bool:
        """Return whether the ledger has all tasks of its state directory."""
        try:
            if completeness.is_complete(self._path, *open_ledger.fingerprint_in(self.db)):
                return True
            # Another process may have counted an attempt that it has not committed yet. The write lock excludes that.
            with self.write():
                return completeness.is_complete(self._path, *open_ledger.fingerprint_in(self.db))
        except apsw.Error as error:
            raise self.failure(error) from error

    def declare_complete(self) -> None:
        """Give the ledger a new name, so that no older copy of it counts as complete."""
        with self.write():
            self.db.execute("UPDATE fingerprint SET name = lower(hex(randomblob(8)))")
            completeness.begin_fingerprint(self._path, *open_ledger.fingerprint_in(self.db))

    def select(self, query: str, cells: tuple[rows.Cell, ...] = ()) -> list[rows.Row]:
        """Return all rows that a query finds."""
        try:
            return self.db.execute(query, cells).fetchall()
        except apsw.Error as error:
            raise self.failure(error) from error

    def write(self) -> Write:
        """Return a context that is one write transaction, or part of the one around it."""
        return Write(self)

    def be_hasty(self) -> None:
        """Use synchronous=NORMAL: only a power loss can undo commits, and never in part."""
        self.db.execute("PRAGMA synchronous=NORMAL")

    def failure(self, error: apsw.Error) -> Exception:
        """Return SQLite's failure as an error; with `create`, move a damaged file aside."""
        if open_ledger.is_damage(error):
            self.db.close()
            (self._lender or self).log_pages = 0
            if not self._may_create:
                return open_ledger.damaged(self._path, error)
            return open_ledger.quarantine(self._path, self._now, error)
        return open_ledger.translated(error, self._path)

    def _committed(self, _: object, __: str, log_pages: int) -> int:
        self.log_pages = log_pages
        return apsw.SQLITE_OK

    def close(self) -> None:
        """End this use of the ledger; the last use closes the connection or lets it rest."""
        (self._lender or self).end_use()

    def lend(self, path: str) -> bool:
        """Count one more use; return False if this connection cannot serve the path."""
        if path != self._path:
            return False
        if self._uses:
            fork_safety.enter()
        elif not self.resume():
            return False
        self._uses += 1
        return True

    def end_use(self) -> None:
        """Count one use less; after the last one, close the connection or let it rest."""
        self._uses -= 1
        if self._uses:
            fork_safety.leave()
        elif self is _kept:
            self.rest()
        else:
            self._disconnect()

    def close_resting(self) -> None:
        """Close the connection if it rests."""
        if fork_safety.resume(self):
            self._disconnect()

    def _disconnect(self) -> None:
        """Close the connection, and let other threads use the ledger even if interrupted."""
        try:
            self.discard()
        finally:
            fork_safety.leave()

    def discard(self) -> None:
        """Close the connection; only now checkpoint a long log, because no process waits."""
        self._fold()
        self.db.close()

    def _fold(self) -> None:
        open_ledger.fold_when_long(self.db, self.log_pages)
        self.log_pages = 0

    def rest(self) -> None:
        """Stop using the ledger but keep it open until `resume`."""
        try:
            self._fold()
        finally:
            fork_safety.rest(self)

    def resume(self, now: datetime | None = None) -> bool:
        """Use a resting ledger again; close it and return False if that is not possible.

        It is not possible after a fork, if another file has replaced the ledger, or if its schema has changed: a write
        to the file that was moved aside would never be read, and this version must not write to a newer schema.
        """
        if not fork_safety.resume(self):
            return False
        try:
            is_ours = _place_of(self._path) == self._place and self._has_our_schema()
        except BaseException:
            self._disconnect()
            raise
        if is_ours:
            self._now = now or self._now
            return True
        self._disconnect()
        return False

    def _has_our_schema(self) -> bool:
        try:
            self.db.execute("PRAGMA synchronous=FULL")  # the use before may have set NORMAL
            return bool(self.db.pragma("user_version") == SCHEMA_VERSION)
        except apsw.Error:
            return False  # opening the ledger anew reports the failure

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        global _kept  # noqa: PLW0603
        if any(error) and (self._lender or self) is _kept:
            _kept = None  # a later use must not find an unfinished transaction
        self.close()


def _place_of(path: str) -> tuple[tuple[int, int] | None, ...]:
    """Return the identities of the ledger's file, its log and the log's index.

    A connection that uses another index would overwrite the writes of other processes.
    """
    return tuple(open_ledger.file_at(path + suffix) for suffix in ("", "-wal", "-shm"))


class Write:
    """One write transaction, begun with BEGIN IMMEDIATE.

    A deferred transaction that reads first can fail to upgrade with SQLITE_BUSY at once, whatever the timeout is,
    because its snapshot is stale.
    """

    def __init__(self, ledger: LedgerFile) -> None:
        self._ledger = ledger
        self._db = ledger.db
        self._is_inner = False

    def __enter__(self) -> None:
        self._is_inner = self._db.in_transaction
        if self._is_inner:
            return
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except apsw.Error as error:
            raise self._ledger.failure(error) from error

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if self._is_inner:
            return
        try:
            if error is None:
                self._db.execute("COMMIT")
        except apsw.Error as failure:
            error = failure
        if error is not None:
            self._undo()
        if isinstance(error, apsw.Error):
            raise self._ledger.failure(error) from error

    def _undo(self) -> None:
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except apsw.Error:
            pass  # the connection is closed, which undoes the transaction; the caller raises the first error

"""An open ledger file: reading, write transactions and closing."""

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


_keeps_open = False
_kept: LedgerFile | None = None


def keep_open() -> None:
    """Keep the ledger open between its uses in this process.

    Opening the ledger takes longer than most uses. Only a short-lived process may call this function, and only one of
    its threads may use the ledger. `stop_hurrying` undoes the call. In the child of a fork, the call is undone
    automatically.
    """
    global _keeps_open  # noqa: PLW0603 - the variable applies to the whole process
    _keeps_open = True


def hurry(patience_s: float) -> None:
    """Keep the ledger open and limit the wait for locks, in this process.

    This function is for a process that a client waits for. `patience_s` is the total time to wait for locks of other
    processes. `stop_hurrying` undoes the call.
    """
    keep_open()
    open_ledger.be_impatient(patience_s)


def stop_hurrying() -> None:
    """Close the ledger after each use again, and wait for locks as usual.

    This undoes `keep_open` and `hurry`.
    """
    global _keeps_open, _kept
    if _kept is not None:
        _kept.close_resting()
    _keeps_open, _kept = False, None
    open_ledger.be_impatient(None)


# No client waits for a forked child, which may run for days. So the child waits for locks as usual. The fork has
# already closed the kept ledger.
os.register_at_fork(after_in_child=stop_hurrying)


class LedgerFile:
    """A connection to the ledger, used by one thread at a time."""

    db: apsw.Connection
    _lender: LedgerFile | None = None
    """The object whose open connection this object shares.

    None if this object has its own connection.
    """
    _uses = 1
    """The number of objects that use this object's own connection."""

    def __init__(self, path: str, now: datetime, *, create: bool = True) -> None:
        """Open the ledger, and restore it first if it is incomplete.

        A keeper passes `create=False`, because a new ledger would not contain the keeper's task. An incomplete ledger
        raises `LedgerIncomplete` if `create` is False, or if this process has no function to restore it.
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
            # Read the file's identity before opening the file. If the file is replaced in between, the connection
            # counts as a connection to the old file, and the ledger is opened again.
            self._place = _place_of(self._path)
            self.db = open_ledger.connect(self._path, self._now, create=self._may_create)
            self.db.set_wal_hook(self._committed)
        except BaseException:
            fork_safety.leave()
            raise
        self._uses = 1
        if _keeps_open:
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
            # Compare again under the write lock, because another process may have counted an attempt before it
            # committed this attempt.
            with self.write():
                return completeness.is_complete(self._path, *open_ledger.fingerprint_in(self.db))
        except apsw.Error as error:
            raise self.failure(error) from error

    def declare_complete(self) -> None:
        """Give the ledger a new name, so that no older copy counts as complete."""
        with self.write():
            self.db.execute("UPDATE fingerprint SET name = lower(hex(randomblob(8)))")
            completeness.begin_fingerprint(self._path, *open_ledger.fingerprint_in(self.db))

    def select(self, query: str, cells: tuple[rows.Cell, ...] = ()) -> list[rows.Row]:
        """Return all rows that a query finds."""
        try:
            return self.db.execute(query, cells).fetchall()
        except apsw.Error as error:
            raise self.failure(error) from error

    def check_consistent(self, task: str) -> None:
        """Raise the error for a damaged ledger if a recorded task lacks attempts."""
        try:
            is_damaged = open_ledger.lacks_attempts(self.db, task)
        except apsw.Error as error:
            raise self.failure(error) from error
        if is_damaged:
            raise self.failure(apsw.CorruptError(f"task {task} lacks attempts"))

    def write(self) -> Write:
        """Return a context that begins a write transaction, or joins the open one."""
        return Write(self)

    def be_hasty(self) -> None:
        """Set SQLite's option `synchronous` to NORMAL.

        After this, only a power loss can undo commits. A power loss never undoes a part of a commit.
        """
        self.db.execute("PRAGMA synchronous=NORMAL")

    def failure(self, error: apsw.Error) -> Exception:
        """Return Outlive's error for SQLite's error.

        If the ledger was opened with `create`, a damaged ledger file is moved aside.
        """
        if open_ledger.is_damage(error) or (
            isinstance(error, apsw.ConstraintError) and open_ledger.is_inconsistent(self.db)
        ):
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
        """End this use of the ledger.

        After the last use, the connection is closed or kept idle.
        """
        (self._lender or self).end_use()

    def lend(self, path: str) -> bool:
        """Let one more object use this connection. Return False if this is impossible.

        This is impossible if `path` is the path of another ledger, or if this ledger was idle and `resume` fails.
        """
        if path != self._path:
            return False
        if self._uses:
            fork_safety.enter()
        elif not self.resume():
            return False
        self._uses += 1
        return True

    def end_use(self) -> None:
        """End one use of this connection.

        After the last use, the connection is closed or kept idle.
        """
        self._uses -= 1
        if self._uses:
            fork_safety.leave()
        elif self is _kept:
            self.rest()
        else:
            self._disconnect()

    def close_resting(self) -> None:
        """Close the connection if it is open but not in use."""
        if fork_safety.resume(self):
            self._disconnect()

    def _disconnect(self) -> None:
        """Close the connection and let other threads use the ledger."""
        try:
            self.discard()
        finally:
            fork_safety.leave()

    def discard(self) -> None:
        """Close the connection. Checkpoint a long log now, when no process waits for it.

        The log is SQLite's write-ahead log.
        """
        self._fold()
        self.db.close()

    def _fold(self) -> None:
        open_ledger.fold_when_long(self.db, self.log_pages)
        self.log_pages = 0

    def rest(self) -> None:
        """Stop using the ledger, but keep its connection open until `resume`."""
        try:
            self._fold()
        finally:
            fork_safety.rest(self)

    def resume(self, now: datetime | None = None) -> bool:
        """Use an idle ledger again. If this fails, close the ledger and return False.

        A ledger cannot be used again in these cases:

        - The process has forked.
        - Another file has replaced the ledger's file. A write to the old file would never be read.
        - The schema of the ledger has changed. This version must not write to a newer schema.
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
            self.db.execute("PRAGMA synchronous=FULL")  # the last user of the connection may have set NORMAL
            return bool(self.db.pragma("user_version") == SCHEMA_VERSION)
        except apsw.Error:
            return False  # the caller opens the ledger again, which reports the failure

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        global _kept  # noqa: PLW0603
        if any(error) and (self._lender or self) is _kept:
            _kept = None  # after an error, a transaction may be unfinished, so no later use may get this connection
        self.close()


def _place_of(path: str) -> tuple[tuple[int, int] | None, ...]:
    """Return the identities of the ledger's file, its log and the log's index.

    The index of SQLite's log counts too, because a connection that uses another index would overwrite the writes of
    other processes.
    """
    return tuple(open_ledger.file_at(path + suffix) for suffix in ("", "-wal", "-shm"))


class Write:
    """One write transaction, begun with BEGIN IMMEDIATE.

    A transaction without IMMEDIATE that reads first may have a stale snapshot when it writes. Then it fails at once
    with SQLITE_BUSY, whatever the timeout is.
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
            pass  # closing the connection undoes the transaction; the caller raises the first error

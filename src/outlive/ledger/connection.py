"""One open ledger file: how it is read, written and closed; what it holds is the others' business."""

from __future__ import annotations

import os

from outlive.ledger import forking, opening
from outlive.ledger.opening import SCHEMA_VERSION, apsw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Self

    from outlive.ledger import rows


class LedgerFile:
    """A connection to the ledger, used by one thread at a time."""

    def __init__(self, path: str, now: datetime, *, create: bool = True) -> None:
        """Open the ledger; a keeper does not `create` one, since its row could not be in it."""
        self._path = path
        self._now = now
        self._may_create = create
        self._log_pages = 0
        forking.enter()
        try:
            # Looked at before it is opened: if it is replaced in between, ours is taken for the old one, and reopened.
            self._place = _place_of(path)
            self.db = opening.connect(path, now, create=create)
            self.db.set_wal_hook(self._committed)
        except BaseException:
            forking.leave()
            raise

    def select(self, query: str, cells: tuple[rows.Cell, ...] = ()) -> list[rows.Row]:
        """All rows that a query finds."""
        try:
            return self.db.execute(query, cells).fetchall()
        except apsw.Error as error:
            raise self.failure(error) from error

    def write(self) -> Write:
        """One write transaction, as a context; inside of another one, part of that."""
        return Write(self)

    def be_hasty(self) -> None:
        """Let what is written from now on be lost with the power of the machine; never with a process, nor in part."""
        self.db.execute("PRAGMA synchronous=NORMAL")

    def failure(self, error: apsw.Error) -> Exception:
        """The error as its reader can act on it; a damaged file has been moved aside."""
        if opening.is_damage(error):
            self.db.close()
            self._log_pages = 0
            if not self._may_create:
                return opening.damaged(self._path, error)
            return opening.quarantine(self._path, self._now, error)
        return opening.translated(error, self._path)

    def _committed(self, _: object, __: str, log_pages: int) -> int:
        self._log_pages = log_pages
        return apsw.SQLITE_OK

    def close(self) -> None:
        """Let go of it; whoever is interrupted at that keeps no other thread from using it."""
        try:
            self.discard()
        finally:
            forking.leave()

    def discard(self) -> None:
        """Close the connection; the log is folded only now, when whoever waited for us has been told."""
        self._fold()
        self.db.close()

    def _fold(self) -> None:
        opening.fold_when_long(self.db, self._log_pages)
        self._log_pages = 0

    def rest(self) -> None:
        """Keep it open without using it, until `resume`."""
        try:
            self._fold()
        finally:
            forking.rest(self)

    def resume(self, now: datetime | None = None) -> bool:
        """Use it again; False, and closed, if a fork has closed it or it is not the ledger that we know any more.

        What we would write into a file that was moved aside nobody would ever read; and a newer Outlive
        may have given it a schema that is not ours to write.
        """
        if not forking.resume(self):
            return False
        try:
            is_ours = _place_of(self._path) == self._place and self._has_our_schema()
        except BaseException:
            self.close()
            raise
        if is_ours:
            self._now = now or self._now
            return True
        self.close()
        return False

    def _has_our_schema(self) -> bool:
        try:
            return bool(self.db.pragma("user_version") == SCHEMA_VERSION)
        except apsw.Error:
            return False  # whatever it is, opening it anew finds the words for it

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _place_of(path: str) -> tuple[tuple[int, int] | None, ...]:
    """Which file, log and index of the log stand there now: with another index, what others write is overwritten."""
    return tuple(_file_at(path + suffix) for suffix in ("", "-wal", "-shm"))


def _file_at(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class Write:
    """One write transaction.

    IMMEDIATE takes the write lock before we read. A deferred transaction that reads first can
    fail to upgrade with SQLITE_BUSY at once, whatever the timeout says: its snapshot is stale.
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
            pass  # it was found damaged and is closed, which is as good; what was wrong is about to be told

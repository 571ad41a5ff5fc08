"""One open ledger file: how it is read, written and closed; what it holds is the others' business."""

from __future__ import annotations

from outlive.ledger import forking, opening
from outlive.ledger.opening import apsw

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
        forking.enter()
        try:
            self.db = opening.connect(path, now, create=create)
        except BaseException:
            forking.leave()
            raise
        self._log_pages = 0
        self.db.set_wal_hook(self._committed)

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
        if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
            self.db.close()
            if not self._may_create:
                return opening.damaged(self._path, error)
            return opening.quarantine(self._path, self._now, error)
        return opening.translated(error, self._path)

    def _committed(self, _: object, __: str, log_pages: int) -> int:
        self._log_pages = log_pages
        return apsw.SQLITE_OK

    def close(self) -> None:
        """Let go of it."""
        self.discard()
        forking.leave()

    def discard(self) -> None:
        """Close the connection; the log is folded only now, when whoever waited for us has been told."""
        opening.fold_when_long(self.db, self._log_pages)
        self.db.close()

    def rest(self) -> None:
        """Keep it open without using it, until `resume`."""
        forking.rest(self)

    def resume(self) -> bool:
        """Use it again; False if it was closed meanwhile."""
        return forking.resume(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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
        if error is not None and self._db.in_transaction:
            self._db.execute("ROLLBACK")
        if isinstance(error, apsw.Error):
            raise self._ledger.failure(error) from error

"""A ledger that stays open between two uses, because opening a ledger is slow."""

from __future__ import annotations

from outlive.ledger.sqlite import SqliteLedger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime


class KeptOpenLedger:
    """A ledger that is opened at its first use and then kept open.

    Several threads may use this object. The ledger stays open until `close` is called, until this object is deleted, or
    until a fork closes the ledger.
    """

    _ledger: SqliteLedger | None = None

    def __init__(self, path: str, *, create: bool = True) -> None:
        self.path = path
        self._may_create = create

    def take(self, now: datetime) -> SqliteLedger:
        """Return the ledger. The caller must close the ledger or put it back."""
        ledger, self._ledger = self._ledger, None
        if ledger is not None and ledger.resume(now):
            return ledger
        return SqliteLedger(self.path, now, create=self._may_create)

    def put_back(self, ledger: SqliteLedger) -> None:
        """Keep a ledger open for its next use."""
        another, self._ledger = self._ledger, ledger
        if another is not None and another is not ledger:
            another.close_resting()
        ledger.rest()

    def use(self, now: datetime) -> Use:
        """Return a context in which the ledger may be used. An error closes the ledger.

        `now` is the present time.
        """
        return Use(self, now)

    def close(self) -> None:
        """Close the ledger if it is still open."""
        if self._ledger is not None:
            self._ledger.close_resting()
        self._ledger = None

    def __del__(self) -> None:
        """Close the ledger if it is still open.

        Otherwise a program that makes many of these objects would use up its file descriptors.
        """
        self.close()


class Use:
    """One use of a kept ledger, as a context."""

    def __init__(self, resting: KeptOpenLedger, now: datetime) -> None:
        self._resting = resting
        self._ledger = resting.take(now)

    def __enter__(self) -> SqliteLedger:
        return self._ledger

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._resting.put_back(self._ledger)
        else:
            self._ledger.close()

"""A ledger that is kept open between two uses: opening it costs more than most of what is done with it."""

from __future__ import annotations

from outlive.ledger.sqlite import SqliteLedger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime


class RestingLedger:
    """Opened when it is first needed, and kept until it is closed or forgotten, or a fork has closed it.

    Threads may share it; of those that they have opened at the same time one is kept.
    """

    _ledger: SqliteLedger | None = None

    def __init__(self, path: str, *, create: bool = True) -> None:
        self.path = path
        self._may_create = create

    def take(self, now: datetime) -> SqliteLedger:
        """The ledger, to be used; the caller's to close, or to put back."""
        ledger, self._ledger = self._ledger, None
        if ledger is not None and ledger.resume(now):
            return ledger
        return SqliteLedger(self.path, now, create=self._may_create)

    def put_back(self, ledger: SqliteLedger) -> None:
        """It is not used any more for now."""
        another, self._ledger = self._ledger, ledger
        if another is not None and another is not ledger and another.resume():
            another.close()
        ledger.rest()

    def use(self, now: datetime) -> Use:
        """Take it for as long as a context lasts; it is put back, or after an error closed."""
        return Use(self, now)

    def close(self) -> None:
        """Let go of it."""
        if self._ledger is not None and self._ledger.resume():
            self._ledger.close()
        self._ledger = None

    def __del__(self) -> None:
        """Whoever makes a client for each launch has no more files open than one who keeps it."""
        self.close()


class Use:
    """One use of a resting ledger."""

    def __init__(self, resting: RestingLedger, now: datetime) -> None:
        self._resting = resting
        self._ledger = resting.take(now)

    def __enter__(self) -> SqliteLedger:
        return self._ledger

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._resting.put_back(self._ledger)
        else:
            self._ledger.close()

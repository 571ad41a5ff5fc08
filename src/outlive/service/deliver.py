"""Delivering to sinks: what belongs together in one call, tried again, its outcome on record.

A deliverer lives as long as something is owed and can still be tried. A sink that fails costs
nobody anything: the notice is in the inbox, and the record says what went wrong.
"""

from __future__ import annotations

import os
import time

from outlive.bundle.home import Home
from outlive.bundle.trace import trace
from outlive.domain.errors import OutliveError
from outlive.domain.notice import COALESCE_S, DEFERRAL_CEILING_S, Telling
from outlive.domain.sink import pause_after
from outlive.keeper.delivering import take_turn
from outlive.ledger.inbox import Inbox
from outlive.ledger.sinks import Sinks
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.sending import send
from outlive.service.telling import notice_documents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from outlive.domain.sink import Delivery, Outcome, Sink

_BUSY_PAUSE_S = 1.0


def deliver_and_exit(path: str) -> NoReturn:
    """The whole life of a deliverer that a keeper has started."""
    time.sleep(COALESCE_S)
    try:
        deliver(Home(path))
    except OutliveError:
        pass  # what was not delivered stays owed
    os._exit(0)


def deliver(home: Home) -> int:
    """Deliver until nothing is owed that could be tried again; how many deliveries succeeded."""
    delivered = 0
    while _is_owed(home):
        turn = take_turn(home)
        if turn is None:
            break  # somebody else does it
        try:
            delivered += _Round(home).until_done()
        finally:
            os.close(turn)
        # What was owed between the last look and now found us still at it: look once more.
    return delivered


def _is_owed(home: Home) -> bool:
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        return ledger.owes_sinks()


class _Round:
    """One deliverer's work: when each sink may be tried next, and since when it has been busy."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._not_before: dict[str, float] = {}
        self._busy_since: dict[str, float] = {}

    def until_done(self) -> int:
        delivered = 0
        while owed := self._owed():
            now = time.monotonic()
            due = {name: parts for name, parts in owed.items() if self._not_before.get(name, 0.0) <= now}
            for sink, parts in due.values():
                delivered += self._tell(sink, parts)
            if not due:
                time.sleep(max(0.01, min(self._not_before[name] for name in owed) - now))
        return delivered

    def _owed(self) -> dict[str, tuple[Sink, list[Delivery]]]:
        with SqliteLedger(self._home.ledger, utc_now()) as ledger:
            sinks = {sink.name: sink for sink in Sinks(ledger).all()}
            owed: dict[str, tuple[Sink, list[Delivery]]] = {}
            for delivery in Sinks(ledger).pending():
                if delivery.sink in sinks:  # or it was removed just now
                    owed.setdefault(delivery.sink, (sinks[delivery.sink], []))[1].append(delivery)
        return owed

    def _tell(self, sink: Sink, parts: Sequence[Delivery]) -> int:
        since = self._busy_since.get(sink.name)
        force = since is not None and time.monotonic() - since >= DEFERRAL_CEILING_S
        documents = self._documents(parts)
        outcome, error = send(sink, documents, force=force)
        if outcome == "busy" and force:
            outcome = "failed"  # it has been busy for long enough
        with SqliteLedger(self._home.ledger, utc_now()) as ledger:
            Sinks(ledger).record(parts, outcome, error, utc_now())
        for document in documents:
            session = document["launched_by"]
            trace(
                self._home, str(session) if session else None, outcome, notice=document["id"], sink=sink.name, why=error
            )
        self._plan_next(sink, parts, outcome)
        return len(parts) if outcome == "delivered" else 0

    def _plan_next(self, sink: Sink, parts: Sequence[Delivery], outcome: Outcome) -> None:
        now = time.monotonic()
        if outcome == "busy":
            self._busy_since.setdefault(sink.name, now)
            self._not_before[sink.name] = now + _BUSY_PAUSE_S
            return
        self._busy_since.pop(sink.name, None)
        self._not_before[sink.name] = now if outcome == "delivered" else now + pause_after(1 + parts[0].tries)

    def _documents(self, parts: Sequence[Delivery]) -> list[dict[str, object]]:
        with SqliteLedger(self._home.ledger, utc_now()) as ledger:
            found = [notice for each in parts for notice in Inbox(ledger).find(each.notice) if notice.id == each.notice]
        return notice_documents(self._home, [Telling(notice=notice) for notice in found], None)

"""Delivering notices to sinks, with retries, in a process called the deliverer.

A sink is a command, webhook or service that gets notices. All due notices for one sink are sent in one call. A failing
sink does not delay other sinks, and its notices stay in the inbox.
"""

from __future__ import annotations

import os
import time

from outlive.bundle.home import Home
from outlive.bundle.trace import trace
from outlive.code_copy import carry
from outlive.domain.errors import OutliveError
from outlive.domain.notices.notice import COALESCE_S, DEFERRAL_CEILING_S, Telling
from outlive.domain.tasks.sink_config import pause_after
from outlive.keeper.sink_process import take_turn
from outlive.ledger.notices import Notices
from outlive.ledger.sinks import Sinks
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.notices.compose import notice_documents
from outlive.service.notices.sink_transport import send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from outlive.domain.tasks.sink_config import Delivery, Outcome, Sink

_BUSY_PAUSE_S = 1.0


def deliver_and_exit(path: str) -> NoReturn:
    """Run a process that delivers notices, and exit. A keeper has started the process."""
    carry(path)
    time.sleep(COALESCE_S)
    try:
        deliver(Home(path))
    except OutliveError:
        pass  # failed deliveries stay in the ledger, and a later process tries again
    os._exit(0)


def deliver(home: Home) -> int:
    """Make all deliveries that are due, and return how many were successful."""
    delivered = 0
    while _is_owed(home):
        turn = take_turn(home)
        if turn is None:
            break  # another process is delivering notices
        try:
            delivered += _Round(home).until_done()
        finally:
            os.close(turn)
        # Check once more: a delivery may have become due after the last check. While this process was at work, no
        # other process could make that delivery.
    return delivered


def _is_owed(home: Home) -> bool:
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        return ledger.owes_sinks()


class _Round:
    """One run of the process that delivers notices.

    The run stores for each sink when the sink may be tried next, and since when the sink has been busy.
    """

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
                if delivery.sink in sinks:  # skip the delivery if its sink was removed
                    owed.setdefault(delivery.sink, (sinks[delivery.sink], []))[1].append(delivery)
        return owed

    def _tell(self, sink: Sink, parts: Sequence[Delivery]) -> int:
        since = self._busy_since.get(sink.name)
        force = since is not None and time.monotonic() - since >= DEFERRAL_CEILING_S
        documents = self._documents(parts)
        outcome, error = send(sink, documents, force=force)
        if outcome == "busy" and force:
            outcome = "failed"  # the sink was busy for longer than the limit
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
            found = [
                notice for each in parts for notice in Notices(ledger).find(each.notice) if notice.id == each.notice
            ]
        return notice_documents(self._home, [Telling(notice=notice) for notice in found], None)

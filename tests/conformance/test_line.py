"""The line in the ledger: tickets in the order of recording, and who is ahead of whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from outlive.domain.errors import TooManyWaiting
from outlive.domain.queueing import MOST_WAITING, Claim, Dependency, Holder
from outlive.domain.settlement import told_as_retrying
from outlive.ledger.line import Line
from tests.conformance.steps import enqueued, running, settlement
from tests.unit.values import NOW, SECOND, attempt, exited, launch

if TYPE_CHECKING:
    from outlive.ledger.sqlite import SqliteLedger

LOCK = (Claim(name="lock:l", room=1),)


def _ahead(ledger: SqliteLedger, task: str) -> list[str]:
    found = Line(ledger).obstacles(task)
    assert found is not None
    return [holder.task for holder in found.ahead[0]]


def test_the_line_is_in_the_order_of_recording(ledger: SqliteLedger) -> None:
    """Ended ones are not in it, others' names are not, and a running one is."""
    for name in ("tfirst", "tsecond", "tthird"):
        enqueued(ledger, name, claims=LOCK)
    enqueued(ledger, "tother", claims=(Claim(name="lock:other", room=1),))
    enqueued(ledger, "tlast222", claims=LOCK)
    assert _ahead(ledger, "tlast222") == ["tfirst", "tsecond", "tthird"]
    for name in ("tfirst", "tsecond"):
        ledger.start(name, 1, NOW + SECOND)
    ledger.settle(settlement(launch(id="tsecond")))
    assert _ahead(ledger, "tlast222") == ["tfirst", "tthird"]
    assert _ahead(ledger, "tother") == []
    assert Line(ledger).obstacles("tfirst") is None, "it is not queued any more"


def test_who_depends_on_others_joins_later(ledger: SqliteLedger) -> None:
    """Until then it holds up nobody, and its place is where it joins; a second ticket is not drawn."""
    running(ledger, "tdep2222")
    enqueued(ledger, "tearly", after=(Dependency(task="tdep2222"),), claims=LOCK)
    enqueued(ledger, "tlate222", claims=LOCK)
    assert _ahead(ledger, "tlate222") == []
    found = Line(ledger).obstacles("tearly")
    assert found is not None
    assert found.pending == (Holder(task="tdep2222", attempt=1),)
    Line(ledger).join("tearly", 1)
    Line(ledger).join("tearly", 1)
    assert _ahead(ledger, "tearly") == ["tlate222"]


def test_what_became_of_dependencies(ledger: SqliteLedger) -> None:
    """Failed ones are named with their state, unless any ending will do; unknown ones are gone."""
    running(ledger, "tbad2222")
    ledger.settle(settlement(launch(id="tbad2222"), exited(3)))
    enqueued(ledger, "tstrict", after=(Dependency(task="tbad2222"), Dependency(task="tnone222")))
    enqueued(ledger, "tany2222", after=(Dependency(task="tbad2222", any_ending=True),))
    strict, any_ending = Line(ledger).obstacles("tstrict"), Line(ledger).obstacles("tany2222")
    assert strict is not None
    assert strict.failed == (("tbad2222", "failed"), ("tnone222", "gone"))
    assert any_ending is not None
    assert (any_ending.failed, any_ending.pending) == ((), ())


def test_a_further_attempt_is_at_the_end_of_the_line(ledger: SqliteLedger) -> None:
    """Recorded with the ending of the one before, in one step: the task never looks ended."""
    asked = running(ledger, "tretry", claims=LOCK, retries=1)
    enqueued(ledger, "tnext222", claims=LOCK)
    again = attempt(2, created_at=NOW + 3 * SECOND, not_before=NOW + 4 * SECOND, automatic=True)
    planned = told_as_retrying(settlement(asked, exited(1)), asked)
    assert ledger.settle(planned, again)
    assert not ledger.settle(planned, again.but(number=3))
    task = ledger.task("tretry")
    assert task is not None
    assert [(each.number, each.state, each.automatic) for each in task.attempts] == [
        *((1, "failed", False), (2, "queued", True)),
    ]
    assert _ahead(ledger, "tretry") == [], "while it rests it is not in line"
    enqueued(ledger, "tbehind2", claims=LOCK)
    Line(ledger).join("tretry", 2)
    assert _ahead(ledger, "tretry") == ["tnext222", "tbehind2"]
    assert [(notice.kind, notice.state) for notice in ledger.history("tretry").notices] == [("retrying", "dismissed")]


def test_only_so_many_may_wait(ledger: SqliteLedger) -> None:
    """The next one is refused and leaves nothing; one that begins at once is not."""
    for number in range(MOST_WAITING):
        enqueued(ledger, f"t{number:07d}")
    with pytest.raises(TooManyWaiting):
        ledger.enqueue(launch(id="tmore222"), attempt())
    assert ledger.task("tmore222") is None
    ledger.enqueue(launch(id="tnow2222"), attempt(state="running", started_at=NOW))
    assert ledger.task("tnow2222") is not None

"""The contract of the queue: each attempt has a place in it, and waits for the attempts ahead of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from outlive.domain.errors import TooManyWaiting
from outlive.domain.tasks.queueing import MOST_WAITING, Claim, Dependency, Holder
from outlive.domain.tasks.settlement import told_as_retrying
from outlive.ledger.queue_order import QueueOrder
from tests.conformance.steps import enqueued, running, settlement
from tests.unit.values import NOW, SECOND, attempt, exited, launch

if TYPE_CHECKING:
    from outlive.ledger.sqlite import SqliteLedger

LOCK = (Claim(name="lock:l", room=1),)


def _ahead(ledger: SqliteLedger, task: str) -> list[str]:
    found = QueueOrder(ledger).obstacles(task)
    assert found is not None
    return [holder.task for holder in found.ahead[0]]


def test_queue_is_in_the_order_of_recording(ledger: SqliteLedger) -> None:
    """Attempts that were recorded earlier are ahead of an attempt if they need the same lock and have not ended."""
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
    assert QueueOrder(ledger).obstacles("tfirst") is None, "a running attempt has obstacles in the queue"


def test_dependent_attempt_is_queued_behind_those_recorded_before_it_joins(ledger: SqliteLedger) -> None:
    """A task that waits for another task blocks nobody. When it may start, it joins the queue at the end.

    Joining a second time changes nothing.
    """
    running(ledger, "tdep2222")
    enqueued(ledger, "tearly", after=(Dependency(task="tdep2222"),), claims=LOCK)
    enqueued(ledger, "tlate222", claims=LOCK)
    assert _ahead(ledger, "tlate222") == []
    found = QueueOrder(ledger).obstacles("tearly")
    assert found is not None
    assert found.pending == (Holder(task="tdep2222", attempt=1),)
    QueueOrder(ledger).join("tearly", 1)
    QueueOrder(ledger).join("tearly", 1)
    assert _ahead(ledger, "tearly") == ["tlate222"]


def test_obstacles_name_failed_and_missing_dependencies(ledger: SqliteLedger) -> None:
    """An attempt's obstacles include each dependency that failed, and each that was deleted, which is called `gone`.

    A failed dependency is no obstacle if the attempt accepts any ending.
    """
    running(ledger, "tbad2222")
    ledger.settle(settlement(launch(id="tbad2222"), exited(3)))
    enqueued(ledger, "tstrict", after=(Dependency(task="tbad2222"), Dependency(task="tnone222")))
    enqueued(ledger, "tany2222", after=(Dependency(task="tbad2222", any_ending=True),))
    strict, any_ending = QueueOrder(ledger).obstacles("tstrict"), QueueOrder(ledger).obstacles("tany2222")
    assert strict is not None
    assert strict.failed == (("tbad2222", "failed"), ("tnone222", "gone"))
    assert any_ending is not None
    assert (any_ending.failed, any_ending.pending) == ((), ())


def test_retried_attempt_joins_the_queue_at_its_end(ledger: SqliteLedger) -> None:
    """A retried attempt joins the queue at its end when its delay is over. Until then it is not in the queue.

    `settle` records the ending and the next attempt in one step, so the task never looks ended in between.
    """
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
    assert _ahead(ledger, "tretry") == [], "an attempt that waits for its retry delay is in the queue"
    enqueued(ledger, "tbehind2", claims=LOCK)
    QueueOrder(ledger).join("tretry", 2)
    assert _ahead(ledger, "tretry") == ["tnext222", "tbehind2"]
    assert [(notice.kind, notice.state) for notice in ledger.history("tretry").notices] == [("retrying", "dismissed")]


def test_ledger_refuses_a_task_when_the_maximum_is_queued(ledger: SqliteLedger) -> None:
    """If the maximum number of tasks is queued, a further task is refused and not recorded.

    A task that need not queue is still accepted.
    """
    for number in range(MOST_WAITING):
        enqueued(ledger, f"t{number:07d}")
    with pytest.raises(TooManyWaiting):
        ledger.enqueue(launch(id="tmore222"), attempt())
    assert ledger.task("tmore222") is None
    ledger.enqueue(launch(id="tnow2222"), attempt(state="running", started_at=NOW))
    assert ledger.task("tnow2222") is not None

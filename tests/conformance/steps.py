"""Steps that the tests of ledgers share. Each step is named after the state in which it leaves a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outlive.domain.tasks.settlement import Settlement, plan_settlement
from outlive.ledger.notices import Notices
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.notices.find_recipients import Recipients
from tests.unit.values import NOW, SECOND, attempt, exited, launch

if TYPE_CHECKING:
    from outlive.domain.tasks.evidence import Evidence
    from outlive.domain.tasks.task import Launch, Task
    from outlive.ledger.contract import Ledger


def enqueued(ledger: Ledger, id_: str = "t7k2m9q4", **changes: Any) -> Launch:
    """Record a queued task."""
    asked = launch(id=id_, **changes)
    assert ledger.enqueue(asked, attempt(created_at=asked.created_at)).id == id_
    return asked


def running(ledger: Ledger, id_: str = "t7k2m9q4", **changes: Any) -> Launch:
    """Record a running task."""
    asked = enqueued(ledger, id_, **changes)
    assert ledger.start(id_, 1, NOW + SECOND)
    return asked


def ended(ledger: Ledger, id_: str = "t7k2m9q4", evidence: Evidence | None = None, **changes: Any) -> Launch:
    """Record a task that ran and has ended."""
    asked = running(ledger, id_, **changes)
    assert ledger.settle(settlement(asked, evidence))
    return asked


def settlement(asked: Launch, evidence: Evidence | None = None, number: int = 1, **changes: Any) -> Settlement:
    """Return the ending of an attempt, two seconds after its start."""
    planned = plan_settlement(asked, number, evidence or exited(), None, now=NOW + 3 * SECOND, settled_by="keeper")
    return planned.but(**changes)


def read_result(ledger: Ledger, id_: str, session: str | None) -> int:
    """Read the result of a task for a session, and return how many notices this acknowledged."""
    assert isinstance(ledger, SqliteLedger)
    with ledger.write():
        project = current(ledger, id_).launch.project
        me = None if session is None else Sessions(ledger).find(session, project)
        origin = Notices(ledger).origin_of(id_)
        if me is None or origin is None or not Recipients(ledger).may_acknowledge(me, id_, origin.session):
            return 0
        return len(Notices(ledger).read(id_, NOW))


def current(ledger: Ledger, id_: str = "t7k2m9q4") -> Task:
    """Return a task as it is in the ledger, and fail if the task is missing."""
    task = ledger.task(id_)
    assert task is not None
    return task

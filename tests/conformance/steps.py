"""Steps that every test of a ledger takes, named by what happens to the task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outlive.domain.settlement import Settlement, plan_settlement
from outlive.ledger.inbox import Inbox
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from tests.unit.values import NOW, SECOND, attempt, exited, launch

if TYPE_CHECKING:
    from outlive.domain.evidence import Evidence
    from outlive.domain.task import Launch, Task
    from outlive.ledger.contract import Ledger


def enqueued(ledger: Ledger, id_: str = "t7k2m9q4", **changes: Any) -> Launch:
    """A task that waits."""
    asked = launch(id=id_, **changes)
    assert ledger.enqueue(asked, attempt(created_at=asked.created_at)).id == id_
    return asked


def running(ledger: Ledger, id_: str = "t7k2m9q4", **changes: Any) -> Launch:
    """A task that runs."""
    asked = enqueued(ledger, id_, **changes)
    assert ledger.start(id_, 1, NOW + SECOND)
    return asked


def ended(ledger: Ledger, id_: str = "t7k2m9q4", evidence: Evidence | None = None, **changes: Any) -> Launch:
    """A task that ran and has ended."""
    asked = running(ledger, id_, **changes)
    assert ledger.settle(settlement(asked, evidence))
    return asked


def settlement(asked: Launch, evidence: Evidence | None = None, number: int = 1, **changes: Any) -> Settlement:
    """The ending of an attempt, two seconds after it began."""
    planned = plan_settlement(asked, number, evidence or exited(), None, now=NOW + 3 * SECOND, settled_by="keeper")
    return planned.but(**changes)


def read_result(ledger: Ledger, id_: str, session: str | None) -> int:
    """A session reads the result of a task; how many notices that withdraws."""
    assert isinstance(ledger, SqliteLedger)
    with ledger.write():
        project = current(ledger, id_).launch.project
        me = None if session is None else Sessions(ledger).find(session, project)
        return 0 if me is None else len(Inbox(ledger).read(id_, me.lineage, NOW))


def current(ledger: Ledger, id_: str = "t7k2m9q4") -> Task:
    """A task that must be there, as the ledger has it now."""
    task = ledger.task(id_)
    assert task is not None
    return task

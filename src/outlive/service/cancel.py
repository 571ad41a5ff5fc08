"""Cancelling: the keeper is asked, because it alone is the ancestor of everything it started."""

from __future__ import annotations

import time

from outlive.bundle.attempt import AttemptFiles, poke
from outlive.domain.value import Value
from outlive.domain.when import timedelta
from outlive.keeper.ending import STEPS
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.lookup import read_tasks
from outlive.service.reconcile import reconcile
from outlive.service.wait import wait_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive.bundle.home import Home
    from outlive.domain.task import Task
    from outlive.service.reconcile import Adopter

# All steps of the keeper, and time for it to settle on a busy machine.
_CEILING = sum(grace for _, grace in STEPS) + 10
_ASK_AGAIN = timedelta(seconds=1)


class Cancelled(Value):
    """What came of a cancel: the task as it is now, and whether the cancel made it so."""

    task: Task
    took: bool
    late: bool
    """It had ended on its own before the cancel reached it."""


def cancel(home: Home, ids: Sequence[str], adopter: Adopter | None) -> list[Cancelled]:
    """End the tasks with everything they started; tells the truth about each."""
    return [_outcome(task) for task in ask_to_end(home, ids, "cancel", adopter)]


def ask_to_end(home: Home, ids: Sequence[str], word: str, adopter: Adopter | None) -> list[Task]:
    """Tell the keepers of tasks to end them, and why; the tasks when that is done, or was in vain."""
    for one in ids:
        reconcile(home, utc_now(), one, adopter)
    until = time.monotonic() + _CEILING
    while time.monotonic() < until:
        waiting = [task for task in read_tasks(home, ids) if task.current.settled_at is None]
        for task in waiting:
            files = AttemptFiles(home.bundle(task.id), task.current.number)
            # Asked again if nobody has taken it up: the keeper that was asked may have been killed.
            if files.read_slot("intent") is None:
                poke(files, word)
        if wait_for(home, [task.id for task in waiting], timeout=_ASK_AGAIN, adopter=adopter):
            break
    return read_tasks(home, ids)


def _outcome(task: Task) -> Cancelled:
    attempt = task.current
    ended_otherwise = attempt.settled_at is not None and attempt.reason != "cancel_incomplete"
    return Cancelled(
        task=task,
        took=task.state == "cancelled",
        late=ended_otherwise and task.state != "cancelled",
    )


def with_descendants(home: Home, ids: Sequence[str]) -> list[str]:
    """The tasks and every task that was launched from inside them."""
    found = list(ids)
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        layer: Sequence[str] = found[:]
        while layer:
            layer = [child for child in ledger.children(layer) if child not in found]
            found.extend(layer)
    return found

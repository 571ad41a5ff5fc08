"""Overlap as it happens: two running tasks that write in one tree.

Every task looks once, when it has first written to a file that was there before, and has that in its
journal. Whichever of two is later finds the other's; so nobody has to look twice, and nobody waits.
"""

from __future__ import annotations

from outlive.bundle.attempt import AttemptFiles
from outlive.domain.errors import OutliveError
from outlive.domain.overlap import shared_tree
from outlive.domain.when import UTC, datetime
from outlive.keeper.settling import let_sinks_be_told
from outlive.ledger.sqlite import SqliteLedger
from outlive.observe.journal import first_write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.domain.task import Launch, Task
    from outlive.keeper.plan import Plan


def tell_of_overlap(plan: Plan, top: str) -> None:
    """Let the sessions of those that write in this tree know of each other; we are one of them now."""
    try:
        with SqliteLedger(plan.home.ledger, datetime.now(UTC), create=False) as ledger:
            for other in ledger.unsettled():
                if not _is_beside(plan.launch, other):
                    continue
                files = AttemptFiles(plan.home.bundle(other.id), other.current.number)
                # A submodule is a tree of its own: who writes around it is not in its way.
                tree = shared_tree(top, other.launch.project) or top
                if first_write(files.effects, tree) and (tree == top or first_write(plan.files.effects, tree)):
                    for task, attempt in _to_be_told(plan, other):
                        ledger.note_overlap(task, attempt)
            let_sinks_be_told(plan.home, ledger)
    except (OSError, OutliveError):
        pass  # the endings will tell of it


def _is_beside(launch: Launch, other: Task) -> bool:
    """Whether it is another task, wherever that runs, and none that has launched the other."""
    is_kin = other.launch.parent == launch.id or launch.parent == other.id
    return other.id != launch.id and other.state == "running" and not is_kin


def _to_be_told(plan: Plan, other: Task) -> list[tuple[str, int]]:
    """Both; of two that one session launched one is enough, and both sides must name the same."""
    found = [(plan.launch.id, plan.files.number), (other.id, other.current.number)]
    is_one = plan.launch.session is not None and plan.launch.session == other.launch.session
    return [max(found)] if is_one else found

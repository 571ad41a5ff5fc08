"""A plan as plain data, for a keeper that becomes another program, or takes over another plan.

What must not be on disk - the environment of the command - is only ever in memory.
"""

from __future__ import annotations

from outlive.bundle.attempt import AttemptFiles
from outlive.bundle.home import Home
from outlive.keeper.plan import Plan, Surroundings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from outlive.domain.task import Launch

    Note = dict[str, Any]


def note_of(plan: Plan) -> Note:
    """All of it but the launch, which the ledger has too."""
    around = plan.surroundings
    return {
        "home": plan.home.path,
        "can_punch": plan.home.can_punch,
        "task": plan.launch.id,
        "attempt": plan.files.number,
        "environ": around.environ,
        "umask": around.umask,
        "limits": around.limits,
        "owner": around.owner,
        "retries_left": plan.retries_left,
        "queue_until": plan.queue_until,
    }


def plan_from(note: Note, launch: Launch) -> Plan:
    """The plan that a note was made of."""
    home = Home(note["home"], can_punch=note["can_punch"])
    return Plan(
        home=home,
        launch=launch,
        files=AttemptFiles(home.bundle(note["task"]), note["attempt"]),
        surroundings=Surroundings(
            environ=note["environ"], umask=note["umask"], limits=note["limits"], owner=note["owner"]
        ),
        retries_left=note["retries_left"],
        queue_until=note["queue_until"],
    )

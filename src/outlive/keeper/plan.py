"""The plan of an attempt: everything that its keeper needs to know.

The installation may be upgraded or deleted while the command runs, so a plan has no path of a module to import later. A
plan can be turned into plain data, called a note. A keeper that hibernates passes a note to the interpreter that it
becomes. A spawner, a process that starts many keepers, passes a note to an idle keeper. A note is kept only in memory,
because it contains the environment of the command, which must not be on disk.
"""

from __future__ import annotations

from outlive.bundle.attempt import AttemptFiles
from outlive.bundle.home import Home
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from outlive.domain.tasks.task import Launch

    Note = dict[str, Any]


class Surroundings(Value):
    """The properties that a command gets from its launcher, such as its environment.

    Descriptors and rights are not included.
    """

    environ: dict[str, str]
    umask: int
    limits: tuple[tuple[int, tuple[int, int]], ...] = ()
    owner: int | None = None
    """A pidfd of a foreground task's owner. When the owner exits, the task is ended.

    None for a background task.
    """


class Plan(Value):
    """Everything that the keeper of one attempt needs to know."""

    home: Home
    launch: Launch
    files: AttemptFiles
    surroundings: Surroundings
    retries_left: int = 0
    queue_until: float | None = None
    """The monotonic time at which the attempt stops waiting for its turn and ends."""

    def note(self) -> Note:
        """Return the plan as plain data, without the task's launch data.

        The launch data are in the bundle.
        """
        return {
            **self.surroundings.__dict__,
            "home": self.home.path,
            "can_punch": self.home.can_punch,
            "task": self.launch.id,
            "attempt": self.files.number,
            "retries_left": self.retries_left,
            "queue_until": self.queue_until,
        }


def plan_from(note: Note, launch: Launch) -> Plan:
    """Return the plan that its plain data and the task's launch data describe."""
    home = Home(note["home"], can_punch=note["can_punch"])
    return Plan(
        home=home,
        launch=launch,
        files=AttemptFiles(home.bundle(note["task"]), note["attempt"]),
        surroundings=Surroundings(**{name: note[name] for name in ("environ", "umask", "limits", "owner")}),
        retries_left=note["retries_left"],
        queue_until=note["queue_until"],
    )

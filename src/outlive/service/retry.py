"""Trying again: a new attempt of a task that has ended."""

from __future__ import annotations

from outlive.bundle.attempt import AttemptFiles, create_attempt
from outlive.domain.errors import Conflict, Unavailable
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.handover import hand_over, new_attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.domain.task import Task
    from outlive.keeper.plan import Surroundings


def retry(home: Home, task: Task, surroundings: Surroundings, now: datetime) -> str:
    """A new attempt of a task that has ended, with the environment of whoever retries."""
    if task.current.settled_at is None:
        raise Conflict(
            f"task {task.id} is {task.state} and cannot be tried again",
            f"`outlive cancel {task.id}` ends it first",
        )
    home.check_room()
    files = AttemptFiles(home.bundle(task.id), task.current.number + 1)
    try:
        held = create_attempt(files)
    except FileExistsError as error:
        raise Conflict(f"task {task.id} is being tried again already", "`outlive list` shows it") from error
    except OSError as error:
        raise Unavailable(
            f"the directory {files.path} cannot be made: {error.strerror}", "nothing was started"
        ) from error
    try:
        with SqliteLedger(home.ledger, now) as ledger:
            mine = ledger.add_attempt(task.id, new_attempt(files.number, now))
    except BaseException:
        held.close()
        raise
    if not mine:
        held.close()
        raise Conflict(f"task {task.id} is being tried again already", "`outlive list` shows it")
    return hand_over(home, task.launch, files, held, surroundings=surroundings, now=now)

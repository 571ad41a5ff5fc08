"""Trying again: a new attempt of a task that has ended."""

from __future__ import annotations

import os
from fcntl import LOCK_EX, flock

from outlive.bundle.attempt import AttemptFiles, create_attempt, discard_bundle
from outlive.domain.errors import Conflict, TriedAgain, Unavailable, hint_after
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.handover import hand_over, new_attempt, prepare
from outlive.service.origin import check_depth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Self

    from outlive.bundle.attempt import Held
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
    check_depth(surroundings.environ)
    home.check_room()
    files = AttemptFiles(home.bundle(task.id), task.current.number + 1)
    with _Turn(files) as turn:
        held = _make_files(home, task, files, now)
        try:
            prepared = prepare(home, task.launch, files, held, surroundings)
        except Unavailable:
            discard_bundle(files.path)
            raise
        with prepared as keeper:
            _add_row(home, task, files, now)
            turn.end()
            return hand_over(home, task.launch, files, keeper, now)


class _Turn:
    """One at a time makes a further attempt of a task; a killed one leaves the turn at once."""

    def __init__(self, files: AttemptFiles) -> None:
        self._fd = os.open(os.path.dirname(files.path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        flock(self._fd, LOCK_EX)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Let the next one look."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _make_files(home: Home, task: Task, files: AttemptFiles, now: datetime) -> Held:
    """The files of the new attempt, held; before its row, as for the first one."""
    if _newest(home, task, now) != task.current.number:
        raise TriedAgain(f"task {task.id} is being tried again already", "`outlive list` shows it")
    try:
        # In our turn, a directory without a row is what a launcher left that was killed before it.
        discard_bundle(files.path)
        return create_attempt(files, in_line=task.launch.is_queued)
    except OSError as error:
        discard_bundle(files.path)
        raise Unavailable(
            f"{files.path} cannot be made: {error.strerror}", hint_after(error, "nothing was started")
        ) from error


def _add_row(home: Home, task: Task, files: AttemptFiles, now: datetime) -> None:
    try:
        with SqliteLedger(home.ledger, now) as ledger, ledger.write():
            is_added = ledger.add_attempt(task.id, new_attempt(task.launch, files.number, utc_now()))
        if not is_added:
            raise TriedAgain(f"task {task.id} was tried again or deleted just now", "`outlive list` shows it")
    except BaseException:
        # An error from COMMIT is no proof that nothing was written.
        if _newest(home, task, now) != files.number:
            discard_bundle(files.path)
        raise


def _newest(home: Home, task: Task, now: datetime) -> int:
    with SqliteLedger(home.ledger, now) as ledger:
        found = ledger.task(task.id)
    return found.current.number if found else 0

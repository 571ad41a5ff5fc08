"""Sending input to a running task."""

from __future__ import annotations

import os

from outlive.bundle import record
from outlive.bundle.attempt import AttemptFiles
from outlive.bundle.stdin import end_input, feed
from outlive.domain.errors import Conflict, Unavailable, UserError
from outlive.keeper.exit_watch import read_identity
from outlive.service.clock import utc_now
from outlive.service.maintenance.reconcile import reconcile
from outlive.service.tasks.find import read_tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Task
    from outlive.service.maintenance.reconcile import Adopter

_PATIENCE_S = 10.0
MOST_AT_ONCE = 1 << 20


def send(home: Home, task_id: str, content: bytes, adopter: Adopter | None, *, is_last: bool = False) -> Task:
    """Write `content` to the standard input of a running task.

    If `is_last` is set, the input is closed afterwards.
    """
    if len(content) > MOST_AT_ONCE:
        raise UserError(
            f"{len(content)} bytes are too much to be sent at once",
            f"send at most {MOST_AT_ONCE >> 20} MiB; for more, let the task read a file",
        )
    reconcile(home, utc_now(), task_id, adopter)
    (task,) = read_tasks(home, [task_id])
    _check(task)
    files = AttemptFiles(home.bundle(task.id), task.current.number)
    try:
        taken = feed(files, content, _PATIENCE_S)
        if taken == len(content) and is_last and not _end(files):
            raise Unavailable(
                f"the input of task {task.id} cannot be closed", "its witness, the process that closes it, was killed"
            )
    except FileNotFoundError as error:
        raise Conflict(
            f"task {task.id} takes no more input", f"its input was closed; `outlive show {task.id}` shows the state"
        ) from error
    if taken < len(content):
        raise Unavailable(
            f"task {task.id} does not read: {taken} of {len(content)} bytes were taken",
            "the task will read these bytes first; send the rest when it reads again",
        )
    return task


def _check(task: Task) -> None:
    if not task.launch.takes_input:
        raise Conflict(f"task {task.id} takes no input", "launch it with --stdin")
    if task.current.settled_at is not None:
        raise Conflict(
            f"task {task.id} is {task.state} and reads nothing any more", f"`outlive show {task.id}` shows how it ended"
        )
    if task.state != "running":
        raise Conflict(f"task {task.id} is {task.state} and reads nothing yet", "send the input when the task runs")


def _end(files: AttemptFiles) -> bool:
    fd = record.open_record(files.record)
    try:
        witness = read_identity(fd, "witness")
    finally:
        os.close(fd)
    return witness is not None and end_input(witness[0])

"""Retrying: a new attempt of a task that has ended."""

from __future__ import annotations

import os
from fcntl import LOCK_EX, flock

from outlive.bundle.attempt import AttemptFiles, create_attempt, discard_bundle
from outlive.bundle.ports import lease_ports, read_ports
from outlive.domain.errors import Conflict, TriedAgain, Unavailable, hint_after
from outlive.ledger.contract import Selection
from outlive.ledger.sqlite import SqliteLedger
from outlive.linux.syscalls import check_pidfd
from outlive.service.clock import utc_now
from outlive.service.tasks.launch_context import check_depth, parent_of, session_of
from outlive.service.tasks.start_attempt import hand_over, new_attempt, prepare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Self

    from outlive.bundle.attempt import HeldFiles
    from outlive.bundle.home import Home
    from outlive.domain.agents.request import AgentStart
    from outlive.domain.tasks.task import Attempt, Launch, Task
    from outlive.keeper.plan import Surroundings


def retry(
    home: Home,
    task: Task,
    surroundings: Surroundings,
    now: datetime,
    *,
    session: str | None = None,
    session_project: str | None = None,
) -> str:
    """Start a new attempt of an ended task and return the id of the task.

    The new attempt has the caller's environment. Its end is reported to `session`. If `session` is None, its end is
    reported to the session in this environment, or else to the session that launched the task.
    """
    if task.current.settled_at is None:
        raise Conflict(
            f"task {task.id} is {task.state} and cannot be tried again",
            f"end the task first: `outlive cancel {task.id}`",
        )
    check_depth(surroundings.environ)
    check_pidfd()
    home.check_room()
    files = AttemptFiles(home.bundle(task.id), task.current.number + 1)
    with _Turn(files) as turn:
        held = _make_files(home, task, files, now)
        _lease_ports(home, task, files, held)
        start = _begin_agent(home, task, files, held, surroundings)
        try:
            launch, environ = task.launch, surroundings.environ
            session = session or session_of(environ)
            if session is not None:
                launch = launch.but(session=session, session_project=session_project, parent=parent_of(environ))
            prepared = prepare(home, launch, files, held, surroundings)
        except Unavailable:
            discard_bundle(files.path)
            raise
        with prepared as keeper:
            row = new_attempt(launch, files.number, utc_now(), start)
            _add_row(home, launch, row, files, start, is_heard_anew=session is not None)
            turn.end()
            return hand_over(home, launch, files, keeper, now)


def lost_tasks(home: Home, project: str | None) -> list[Task]:
    """Return the lost tasks that are safe to run again, the oldest first.

    Such a task never began, or was launched with `--retries`. Every other lost task may have done part of its work, so
    the user must decide. A task whose agent asked a question needs the user's answer.
    """
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        lost = ledger.tasks(Selection(project=project, states=("lost",)))
        revivable = [
            task for task in lost if not task.has_asked and (task.launch.retries > 0 or never_began(ledger, task))
        ]
    return revivable[::-1]


def never_began(ledger: SqliteLedger, task: Task) -> bool:
    """Return whether a task's newest attempt is known never to have begun."""
    number = task.current.number
    return any(seen.started == "no" for each, _, seen in ledger.history(task.id).evidence if each == number)


class _Turn:
    """A lock that lets only one process create an attempt of a task.

    If the process is killed, the kernel releases the lock.
    """

    def __init__(self, files: AttemptFiles) -> None:
        self._fd = os.open(os.path.dirname(files.path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        flock(self._fd, LOCK_EX)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Release the lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _make_files(home: Home, task: Task, files: AttemptFiles, now: datetime) -> HeldFiles:
    """Create and lock the new attempt's files, before its ledger row is written.

    Raises `TriedAgain` if another process has added an attempt.
    """
    if _newest(home, task.id, now) != task.current.number:
        raise TriedAgain(f"a retry of task {task.id} has already started", "`outlive list` shows the task")
    try:
        # This process has the lock for new attempts, so no other process makes this directory now. If the directory
        # exists, a process was killed that had made the directory and not yet written the row.
        discard_bundle(files.path)
        return create_attempt(files, in_line=task.launch.is_queued)
    except OSError as error:
        discard_bundle(files.path)
        raise Unavailable(
            f"{files.path} cannot be made: {error.strerror}", hint_after(error, "nothing was started")
        ) from error


def _lease_ports(home: Home, task: Task, files: AttemptFiles, held: HeldFiles) -> None:
    """Lease the ports of the task again, the same ones if they are free."""
    before = read_ports(AttemptFiles(home.bundle(task.id), task.current.number))
    try:
        lease_ports(files, held, list(before), task.launch.project, before)
    except Unavailable:
        discard_bundle(files.path)
        raise


def _begin_agent(
    home: Home, task: Task, files: AttemptFiles, held: HeldFiles, surroundings: Surroundings
) -> AgentStart | None:
    """Write how the new attempt of an agent begins, and return it.

    Returns None if the task is a command and not an agent.
    """
    if task.launch.agent is None:
        return None
    from outlive.service.agents.prepare import begin_again  # noqa: PLC0415 - imported here, because only agent tasks need it

    try:
        return begin_again(home, task, files, surroundings.environ)
    except BaseException as error:
        held.close()
        discard_bundle(files.path)
        if isinstance(error, OSError):
            raise Unavailable(
                f"{files.path} cannot be made: {error.strerror}", hint_after(error, "nothing was started")
            ) from error
        raise


def _add_row(
    home: Home, launch: Launch, row: Attempt, files: AttemptFiles, start: AgentStart | None, *, is_heard_anew: bool
) -> None:
    try:
        with SqliteLedger(home.ledger, row.created_at) as ledger, ledger.write():
            if start is not None:
                from outlive.service.agents.prepare import check_session_is_free  # noqa: PLC0415 - imported here, because only agent tasks need it

                check_session_is_free(ledger, launch, start)
            is_added = ledger.add_attempt(launch.id, row)
            if is_added and is_heard_anew:
                ledger.set_session(launch)
        if not is_added:
            raise TriedAgain(f"task {launch.id} was tried again or deleted just now", "`outlive list` shows the task")
    except BaseException:
        # An error from COMMIT does not prove that the row was not written, so look for the row in the ledger.
        if _newest(home, launch.id, row.created_at) != files.number:
            discard_bundle(files.path)
        raise


def _newest(home: Home, task: str, now: datetime) -> int:
    with SqliteLedger(home.ledger, now) as ledger:
        found = ledger.task(task)
    return found.current.number if found else 0

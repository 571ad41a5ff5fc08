"""Starting an attempt: the launcher passes the attempt's locked files to a keeper."""

from __future__ import annotations

import os
import time

from outlive.bundle.attempt import take
from outlive.domain.errors import NotStarted, Unavailable, hint_after
from outlive.domain.tasks.command import quote
from outlive.domain.tasks.task import Attempt
from outlive.keeper.plan import Plan
from outlive.keeper.spawn import stand_by
from outlive.linux.syscalls import boot_id, pid_namespace
from outlive.service.tasks.launch_context import environ_of_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from outlive.bundle.attempt import AttemptFiles, HeldFiles
    from outlive.bundle.home import Home
    from outlive.domain.agents.request import AgentStart
    from outlive.domain.tasks.task import Launch
    from outlive.keeper.plan import Surroundings
    from outlive.keeper.spawn import NewKeeper
    from outlive.ledger.sqlite import SqliteLedger

_BEGINNING_TAKES_AT_MOST = 10.0


def open_ledger(home: Home, now: datetime) -> SqliteLedger:
    """Open the ledger.

    The code of the ledger is imported here, so that the import takes place while the new keeper starts.
    """
    from outlive.ledger.sqlite import SqliteLedger  # noqa: PLC0415

    return SqliteLedger(home.ledger, now)


def new_attempt(launch: Launch, number: int, now: datetime, start: AgentStart | None = None) -> Attempt:
    """Return the row for a new attempt that begins now on this machine.

    The row names the boot and the PID namespace. `start` says how an agent's attempt begins. It is None for a command.
    """
    row = Attempt(
        number=number,
        state="queued" if launch.is_queued else "running",
        created_at=now,
        started_at=None if launch.is_queued else now,
        boot=boot_id(),
        pid_namespace=pid_namespace(),
    )
    if start is None or launch.agent is None:
        return row
    from outlive.keeper.agents.next_start import claims_of, known_at_start  # noqa: PLC0415 - imported here, because only agent tasks need it

    return row.but(claims=claims_of(launch, start), agent=known_at_start(launch.agent, start))


def prepare(home: Home, launch: Launch, files: AttemptFiles, held: HeldFiles, surroundings: Surroundings) -> NewKeeper:
    """Start a keeper that waits for the signal to begin the attempt.

    Raises `Unavailable` if no process can be started.
    """
    around = surroundings.but(environ=environ_of_task(surroundings.environ, launch.id, launch.session))
    plan = Plan(home=home, launch=launch, files=files, surroundings=around, retries_left=launch.automatic_attempts)
    try:
        if not launch.is_queued:
            return stand_by(plan, held)
        from outlive.service.tasks.wait_turn import wait_then_keep  # noqa: PLC0415 - imported here, because only a launch that waits for another task needs it

        return stand_by(plan, held, wait_then_keep)
    except OSError as error:
        held.close()
        raise Unavailable(
            f"no process can be started: {error.strerror}", hint_after(error, "nothing was started")
        ) from error


def hand_over(home: Home, launch: Launch, files: AttemptFiles, keeper: NewKeeper, now: datetime) -> str:
    """Let the keeper begin, and return the task's id when the task runs or is queued.

    Raises `NotStarted` if the command could not be started, and `Unavailable` if the keeper does not confirm the
    start.
    """
    answer = keeper.begin()
    if answer in ("running", "queued"):
        return launch.id
    if answer == "silent":
        raise Unavailable(
            f"task {launch.id} is recorded, but its keeper has not confirmed that the command began",
            f"the keeper may be stopped, or waits for a disk; `outlive show {launch.id}` shows what is known,"
            f" and `outlive cancel {launch.id}` ends the task",
        )
    # The keeper answered that no command runs, or it closed its pipe without an answer.
    _wait_for_beginning(files)
    from outlive.service.maintenance.reconcile import reconcile  # noqa: PLC0415 - imported here, because it is needed only if the command may not have begun

    reconcile(home, now, launch.id)
    with open_ledger(home, now) as ledger:
        task = ledger.task(launch.id)
    attempt = task.current if task else None
    if attempt is not None and attempt.reason == "dependency_failed":
        raise NotStarted(
            f"task {launch.id} was not started: {attempt.detail}",
            "the task is recorded as cancelled; `--after-any` runs a task after any ending",
            launch.id,
        )
    if attempt is not None and attempt.reason == "not_started":
        name = launch.cwd if "be entered" in (attempt.detail or "") else launch.argv[0]
        raise NotStarted(
            f"task {launch.id} could not be started: {attempt.detail}: {name}",
            _hint_of_not_started(launch, name),
            launch.id,
        )
    # If the state is `running`, a new keeper may have adopted a process that has not executed the command yet or that
    # is about to exit.
    is_unconfirmed = attempt is not None and attempt.state == "running" and not _is_recorded_as_begun(files)
    if attempt is None or attempt.state == "lost" or is_unconfirmed:
        raise Unavailable(
            f"it is not known whether task {launch.id} began: its keeper, its witness or its own process was killed",
            f"`outlive show {launch.id}` shows what is known; launch the task again",
        )
    return launch.id


def _hint_of_not_started(launch: Launch, name: str) -> str:
    """Return what to do about a command that could not be started."""
    if launch.argv == (name,) and len(name.split()) > 1:
        return f"the first word after `--` is the name of a program; for a line of shell: outlive run {quote(name)}"
    return f"the task is recorded as failed; `outlive show {launch.id}` shows more"


def _is_recorded_as_begun(files: AttemptFiles) -> bool:
    return (files.read_slot("process") or {}).get("started") == "yes"


def _wait_for_beginning(files: AttemptFiles) -> None:
    """Wait until the attempt's files show whether the command has begun.

    A keeper that dies closes its pipe to the launcher before its locks are released. So this function waits until the
    record shows that the command has begun, or until the locks are free.
    """
    until = time.monotonic() + _BEGINNING_TAKES_AT_MOST
    while time.monotonic() < until and not _is_recorded_as_begun(files):
        held = [take(files, which) for which in ("lock", "control")]
        for fd in held:
            if fd is not None:
                os.close(fd)
        if None not in held:
            return
        time.sleep(0.002)

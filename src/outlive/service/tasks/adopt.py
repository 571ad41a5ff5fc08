"""Adopting: a process that was started without Outlive becomes a task.

Less is known about an adopted process than about other tasks. Its effects are not observed. Its output is copied only
from a file. Its exit code is known only if the kernel reports exit codes to processes other than the parent.
"""

from __future__ import annotations

import os
import time

from outlive.bundle import record
from outlive.bundle.attempt import create_attempt, discard_bundle
from outlive.domain.errors import Conflict, Unavailable, UserError, hint_after
from outlive.domain.ids import task_id
from outlive.domain.tasks.task import Launch
from outlive.domain.timestamps import UTC, datetime, timedelta
from outlive.domain.value import Value
from outlive.keeper import process_tree
from outlive.ledger.client_tasks import ClientTasks
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.linux.foreign_process import ancestors, holders_of, is_kernel_thread, observe_process
from outlive.linux.processes import setting_of
from outlive.linux.syscalls import boot_id
from outlive.service.clock import utc_now
from outlive.service.maintenance.reconcile import reconcile
from outlive.service.sessions.liveness import mark_of
from outlive.service.tasks.launch_context import parent_of, project_of, session_of
from outlive.service.tasks.run import DEFAULT_OUTPUT_CAP, DEFAULT_RETENTION, make_bundle
from outlive.service.tasks.start_attempt import new_attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from outlive.bundle.attempt import AttemptFiles, HeldFiles
    from outlive.bundle.home import Home
    from outlive.domain.sessions.client_task import ClientTask
    from outlive.domain.tasks.task import Notify, Task
    from outlive.linux.foreign_process import ForeignProcess
    from outlive.service.maintenance.reconcile import Adopter

_RECENT_SESSIONS = 1000
_SAME_USER = "only processes of the same user can be adopted"


class AdoptRequest(Value):
    """The wanted properties of the new task."""

    environ: Mapping[str, str]
    """The environment of the process that adopts. It names the session."""
    description: str | None = None
    session: str | None = None
    group: str | None = None
    notify: Notify = "end"
    max_output: int = DEFAULT_OUTPUT_CAP
    retain: timedelta = DEFAULT_RETENTION


def adopt(home: Home, named: str, wish: AdoptRequest, project: str, adopter: Adopter) -> str:
    """Make a process a task, though it was started without Outlive.

    Returns the id of the new task. `named` is the process id, or the client's id of a background command.
    """
    foreign = None if named.isascii() and named.isdigit() else _foreign(home, named, wish, project)
    pid = int(named) if foreign is None else _process_of(foreign)
    running = _examine(home, pid)
    home.check_room()
    launch = _plan_launch(running, wish, foreign)
    files = make_bundle(home, launch)
    if files is None:
        raise Unavailable(f"another task has the id {launch.id}", "try again: each try chooses a new id")
    held = _hold(files, running)
    try:
        with SqliteLedger(home.ledger, utc_now()) as ledger, ledger.write():
            _check_is_no_task(home, ledger, pid)  # since `_examine`, another caller may have adopted the process
            started = datetime.fromtimestamp(running.started_s, UTC)
            ledger.enqueue(launch, new_attempt(launch, 1, utc_now()).but(started_at=started))
    except Exception:
        held.close()
        discard_bundle(files.bundle)
        raise
    adopter(home, launch, files, held)
    return launch.id


def check_adopted(home: Home, task: str) -> None:
    """Raise `Conflict` if the process ended before a keeper could watch it."""
    reconcile(home, utc_now(), task)
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        found = ledger.task(task)
    if found is not None and found.state == "lost":
        raise Conflict(
            f"the process ended before it could be adopted as task {task}", f"`outlive show {task}` shows its output"
        )


def _foreign(home: Home, name: str, wish: AdoptRequest, project: str) -> ClientTask:
    """Return the client's background command with the id `name`.

    Only commands of the session are searched. If no session is known, all commands in the project are searched. Raises
    `UserError` if no command has the id.
    """
    session = wish.session or session_of(wish.environ)
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        sessions = Sessions(ledger).of_project(project, _RECENT_SESSIONS)
        own = [each for each in sessions if session is None or each.id == session]
        found = [one for each in own for one in ClientTasks(ledger).running(each.seq) if one.seen.id == name]
    if not found:
        raise UserError(
            f"no client runs a command with the id {name[:60]!r} here",
            "`outlive list` shows the commands of clients; for any other process, give its process id",
        )
    return found[-1]


def _process_of(foreign: ClientTask) -> int:
    """Return the topmost process that writes to a command's output.

    Raises `UserError` if no process writes to the output.
    """
    writers = [] if foreign.seen.output is None else holders_of(foreign.seen.output)
    tops = [pid for pid in writers if not set(list(ancestors(pid))[1:]) & set(writers)]
    if not tops:
        raise UserError(
            f"no process of {foreign.seen.id} can be found",
            "the command has ended, or it does not write to the file that the client named; give its process id",
        )
    return tops[0]


def _examine(home: Home, pid: int) -> ForeignProcess:
    """Return what is known about a process, or raise an error if it cannot be adopted."""
    if pid == 1:
        raise UserError("process 1 cannot be adopted", "all other processes depend on process 1")
    try:
        running = observe_process(pid)
    except PermissionError as error:
        raise UserError(f"no permission to inspect process {pid}", _SAME_USER) from error
    if running is None or pid <= 0:
        raise UserError(f"there is no running process {pid}", "`ps` lists the running processes")
    if running.user != os.geteuid() or is_kernel_thread(pid):
        raise UserError(f"process {pid} belongs to another user", _SAME_USER)
    if pid in ancestors(os.getpid()):
        raise UserError(
            f"process {pid} started this command",
            "adopt another process, not your own shell or client",
        )
    if process_tree.keeps_another_task(pid):
        raise UserError(f"process {pid} is a process of Outlive itself", "`outlive list` shows the tasks")
    _check_is_no_client(home, pid)
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        _check_is_no_task(home, ledger, pid)
    return running


def _check_is_no_client(home: Home, pid: int) -> None:
    process = mark_of(pid)
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        sessions = Sessions(ledger).newest(_RECENT_SESSIONS)
    client = next((each for each in sessions if each.process == process and each.ended_at is None), None)
    if client is not None:
        raise UserError(
            f"process {pid} is the client of session {client.id}",
            "adopt a process that the client runs, not the client itself",
        )


def _check_is_no_task(home: Home, ledger: SqliteLedger, pid: int) -> None:
    """Raise `Conflict` if a process belongs to a task that has not ended."""
    inside = setting_of(pid, "OUTLIVE_TASK")
    task = next((each for each in ledger.unsettled() if each.id == inside or _is_adopted_as(home, each, pid)), None)
    if task is not None:
        raise Conflict(f"process {pid} already belongs to task {task.id}", f"`outlive show {task.id}` shows the task")


def _is_adopted_as(home: Home, task: Task, pid: int) -> bool:
    """Return whether a task has adopted a process.

    Returns False if the task adopted an older process with the same process id.
    """
    return task.launch.adopted_pid == pid and process_tree.is_named_by_record(pid, home.bundle(task.id))


def _plan_launch(running: ForeignProcess, wish: AdoptRequest, foreign: ClientTask | None) -> Launch:
    return Launch(
        id=task_id(os.urandom(8)),
        command=running.command if foreign is None else foreign.seen.command,
        argv=running.argv or (running.command,),
        cwd=running.cwd,
        project=project_of(running.cwd),
        host=os.uname().nodename,
        created_at=utc_now(),
        description=wish.description or (None if foreign is None else foreign.seen.description),
        session=wish.session or session_of(wish.environ),
        parent=parent_of(wish.environ),
        group=wish.group,
        notify=wish.notify,
        observe="off",
        max_output=wish.max_output,
        retain=wish.retain,
        adopted_pid=running.identity.pid,
        adopted_output=running.output,
    )


def _hold(files: AttemptFiles, running: ForeignProcess) -> HeldFiles:
    """Create and lock the files of an attempt for an adopted process.

    The record names the adopted process. It names no witness, because the process has none.
    """
    try:
        held = create_attempt(files)
    except OSError as error:
        discard_bundle(files.bundle)
        raise Unavailable(
            f"{files.bundle} cannot be made: {error.strerror}", hint_after(error, "nothing was adopted")
        ) from error
    identity = running.identity
    source: dict[str, Any] = (
        {} if running.output_fd is None else {"source": running.output_fd, "skipped": _skipped(running)}
    )
    record.write_slot(
        held.record,
        "process",
        pid=identity.pid,
        inode=identity.inode,
        start=identity.start,
        boot=boot_id(),
        namespace=identity.namespace,
        monotonic=time.monotonic_ns(),
        started="yes",
        **source,
    )
    return held


def _skipped(running: ForeignProcess) -> int:
    """Return how many bytes of old output to skip.

    The rest then fits into the default limit on stored output.
    """
    return max(0, running.output_size - DEFAULT_OUTPUT_CAP)

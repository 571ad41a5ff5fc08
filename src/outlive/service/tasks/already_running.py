"""The check before a launch whether the same server runs already.

A second copy of a server or a watcher is almost never wanted: it finds its port taken, or moves to another port. So
such a launch is refused. A second copy of any other command is started, and the caller is told of the first copy.

A script may launch one command hundreds of times. So this module imports little, and looks at few processes.
"""

from __future__ import annotations

from outlive.bundle.attempt import AttemptFiles
from outlive.bundle.ports import read_ports
from outlive.domain.errors import AlreadyRunning
from outlive.domain.tasks.ports import port_variables
from outlive.domain.tasks.server_command import runs_until_ended
from outlive.keeper import process_tree
from outlive.linux.listeners import listeners_of
from outlive.linux.processes import settings_of
from outlive.linux.syscalls import boot_id, pid_namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Task

_COMMAND_COLUMNS = 60


def check_not_running(home: Home, tasks: Sequence[Task], environ: Mapping[str, str], now: datetime) -> None:
    """Raise `AlreadyRunning` if one of the given tasks is a server or a watcher.

    The tasks run the command of the launch in its directory, newest first. `environ` is the environment of the launch.
    A task with other ports in its environment is a different server. If a copy is no server, then the command is no
    server, so the older copies are not inspected.
    """
    for task in tasks:
        files = AttemptFiles(home.bundle(task.id), task.current.number)
        slot = files.read_slot("process") or {}
        if slot.get("boot") != boot_id() or str(slot.get("namespace")) != str(pid_namespace()):
            continue  # the processes of this task cannot be seen from here
        if not _has_same_ports(files, int(slot["pid"]), environ):
            continue
        ports = sorted({each.port for each in listeners_of(_pids_of(slot))})
        if ports or runs_until_ended(task.launch.argv):
            raise _error(task, ports, now)
        return


def _pids_of(slot: Mapping[str, str]) -> list[int]:
    """Return the pids of a task's processes, from the record of its command and its witness.

    A process whose keeper and witness were killed may be missing. The search for such a process would take too long.
    """
    witness = int(slot["witness"]) if "witness" in slot else int(slot["pid"])
    return [int(slot["pid"]), *(each.pid for each in process_tree.descendants(witness))]


def _has_same_ports(files: AttemptFiles, pid: int, environ: Mapping[str, str]) -> bool:
    """Return whether a task has the same ports in its environment as a launch.

    The variables with `PORT` in their names are compared. Variables of leased ports do not count. If the environment of
    the task cannot be read, it counts as the same.
    """
    before = settings_of(pid)
    if not before:
        return True
    leased = port_variables(read_ports(files))
    return _ports_in(before, leased) == _ports_in(environ, leased)


def _ports_in(environ: Mapping[str, str], leased: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in environ.items() if "PORT" in name and name not in leased}


def _error(task: Task, ports: Sequence[int], now: datetime) -> AlreadyRunning:
    from outlive.domain.text.sanitize import one_line  # noqa: PLC0415 - only an error needs this import
    from outlive.domain.text.units import show_duration  # noqa: PLC0415

    began = task.current.started_at
    facts = [one_line(task.launch.command, _COMMAND_COLUMNS)]
    if began is not None:
        facts.append(f"for {show_duration(now - began)}")
    if ports:
        facts.append(f"listens on {', '.join(map(str, ports))}")
    until = f" --until port:{ports[0]}" if ports else ""
    return AlreadyRunning(
        f"already running: {task.id} ({', '.join(facts)})",
        f"use that task: `outlive output {task.id}`, `outlive wait {task.id}{until}`; to restart it, first"
        f" `outlive cancel {task.id}`; `outlive run --again` starts another copy",
    )

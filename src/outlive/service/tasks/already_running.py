"""The check before a launch whether the same server runs already.

A second copy of a server or a watcher is almost never wanted: it finds its port taken, or moves to another port. So
such a launch is refused. A second copy of any other command is started, and the caller is told of the first copy.
"""

from __future__ import annotations

from outlive.bundle.ports import read_ports
from outlive.domain.errors import AlreadyRunning
from outlive.domain.tasks.ports import port_variables
from outlive.domain.tasks.server_command import runs_until_ended
from outlive.domain.text.sanitize import one_line
from outlive.domain.text.units import show_duration
from outlive.linux.listeners import listeners_of
from outlive.linux.processes import settings_of
from outlive.service.tasks.find import read_tasks
from outlive.service.tasks.read import files_of
from outlive.service.tasks.wait_for_condition import pids_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Task

_COMMAND_COLUMNS = 60
_MOST_CHECKED = 3


def check_not_running(home: Home, ids: Sequence[str], environ: Mapping[str, str], now: datetime) -> None:
    """Raise `AlreadyRunning` if one of the given tasks is a server or a watcher.

    The tasks have the command and the directory of the launch. Only the first few tasks are checked, so that many
    copies do not slow down a launch. `environ` is the environment of the launch. A task with other ports in its
    environment is a different server.
    """
    for task in read_tasks(home, ids[:_MOST_CHECKED]):
        if not _has_same_ports(home, task, environ):
            continue
        pids = pids_of(home, task, files_of(home, task))
        ports = sorted({each.port for each in listeners_of(pids)})
        if ports or runs_until_ended(task.launch.argv):
            raise _error(task, ports, now)


def _has_same_ports(home: Home, task: Task, environ: Mapping[str, str]) -> bool:
    """Return whether a task has the same ports in its environment as a launch.

    The variables with `PORT` in their names are compared. Variables of leased ports do not count. If the environment of
    the task cannot be read, it counts as the same.
    """
    files = files_of(home, task)
    slot = files.read_slot("process")
    before = settings_of(int(slot["pid"])) if slot is not None else {}
    if not before:
        return True
    leased = port_variables(read_ports(files))
    return _ports_in(before, leased) == _ports_in(environ, leased)


def _ports_in(environ: Mapping[str, str], leased: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in environ.items() if "PORT" in name and name not in leased}


def _error(task: Task, ports: Sequence[int], now: datetime) -> AlreadyRunning:
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

"""The running tasks that a session waits for.

A session does not wait for tasks that may run without end. These are servers, which listen on a port and print
nothing, and tasks that are reported only if they fail. If an awaited task turns out to be a server, the session is
notified of that and stops waiting for the task.
"""

from __future__ import annotations

import os

from outlive.bundle.attempt import AttemptFiles
from outlive.domain.tasks.task import AWAITED
from outlive.linux.foreign_process import ancestors
from outlive.linux.processes import opened_by, setting_of
from outlive.linux.syscalls import boot_id, pid_namespace
from outlive.service.clock import utc_now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Task

QUIET_S = 60.0
_LISTENING = "0A"


def awaited(tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks for which a session waits: those whose success is reported.

    A task of which only a failure is reported is left out.
    """
    return [task for task in tasks if task.launch.notify in AWAITED]


def servers_among(home: Home, tasks: Sequence[Task]) -> dict[str, int]:
    """Return a TCP port of each task that looks like a server.

    Such a task listens on a port and has printed nothing for a minute.
    """
    quiet = [task for task in tasks if quiet_s(home, task) >= QUIET_S]
    if not quiet:
        return {}
    found = _ports_by_task({pid: task.id for task in quiet for pid in _processes_on_record(home, task)})
    return {task.id: found[task.id] for task in quiet if task.id in found}


def quiet_s(home: Home, task: Task) -> float:
    """Return for how many seconds the output of a task has not grown.

    Returns 0 if there is no output file. If the clock is set forward, a busy task looks quiet. So a task counts as a
    server only if it also listens on a port.
    """
    try:
        written_at = os.stat(AttemptFiles(home.bundle(task.id), task.current.number).output).st_mtime
    except OSError:
        return 0.0
    return max(0.0, utc_now().timestamp() - written_at)


def _processes_on_record(home: Home, task: Task) -> list[int]:
    """Return the process ids of a task's command and of its witness.

    An adopted process has no witness. Returns an empty list if the task began before the last boot or in another PID
    namespace.
    """
    slot = AttemptFiles(home.bundle(task.id), task.current.number).read_slot("process")
    if slot is None or slot.get("boot") != boot_id() or str(slot.get("namespace")) != str(pid_namespace()):
        return []  # in this boot or PID namespace, these ids may belong to other processes
    return [int(slot[name]) for name in ("pid", "witness") if slot.get(name)]


def _ports_by_task(on_record: Mapping[int, str]) -> dict[str, int]:
    """Return a TCP port of each task that listens on a port.

    Processes whose /proc entries cannot be read are left out. A process belongs to the task that `OUTLIVE_TASK` in its
    environment names. An adopted process has no such variable. It belongs to the task for which `on_record` lists the
    process or one of its ancestors.
    """
    sockets = _listening()
    found: dict[str, int] = {}
    for pid in filter(str.isdigit, os.listdir("/proc") if sockets else ()):
        try:
            opened = opened_by(int(pid))
        except OSError:
            continue
        ports = [sockets[path] for path in opened if path in sockets]
        if ports:
            task = setting_of(int(pid), "OUTLIVE_TASK")
            if task not in on_record.values():
                task = next((on_record[one] for one in ancestors(int(pid)) if one in on_record), "")
            if task:
                found.setdefault(task, ports[0])
    return found


def _listening() -> dict[str, int]:
    """Return the TCP ports on which this user's processes listen.

    The key is the name of the socket (`socket:[INODE]`).
    """
    found = {}
    for table in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
        try:
            with open(table, encoding="ascii") as lines:
                rows = [line.split() for line in lines][1:]
        except OSError:
            continue
        for row in rows:
            if row[3] == _LISTENING and int(row[7]) == os.geteuid():
                found[f"socket:[{row[9]}]"] = int(row[1].rpartition(":")[2], 16)
    return found

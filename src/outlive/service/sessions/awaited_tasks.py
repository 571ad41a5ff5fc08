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
from outlive.linux.processes import setting_of
from outlive.service.clock import utc_now
from outlive.service.tasks.read import processes_on_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Task

QUIET_S = 60.0


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
    found = _ports_by_task({pid: task.id for task in quiet for pid in processes_on_record(home, task)})
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


def _ports_by_task(on_record: Mapping[int, str]) -> dict[str, int]:
    """Return a TCP port of each task that listens on a port.

    Processes whose /proc entries cannot be read are left out. A process belongs to the task that `OUTLIVE_TASK` in its
    environment names. An adopted process has no such variable. It belongs to the task for which `on_record` lists the
    process or one of its ancestors.
    """
    from outlive.linux.listeners import all_listeners  # noqa: PLC0415 - imported here, because only a quiet task needs it

    found: dict[str, int] = {}
    for listener in all_listeners():
        for pid in listener.pids:
            task = setting_of(pid, "OUTLIVE_TASK")
            if task not in on_record.values():
                task = next((on_record[one] for one in ancestors(pid) if one in on_record), "")
            if task:
                found.setdefault(task, listener.port)
    return found

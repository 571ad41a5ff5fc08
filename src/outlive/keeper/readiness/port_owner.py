"""The owner of a listener, as text for users and models."""

from __future__ import annotations

import os

from outlive.domain.text.sanitize import masked, one_line
from outlive.linux.foreign_process import ancestors
from outlive.linux.processes import KEEPER_NAME, WITNESS_NAME, command_line, name_of, opened_by, setting_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.linux.listeners import Listener

_COMMAND_COLUMNS = 60


def task_of(pid: int) -> str | None:
    """Return the id of the task to which a process belongs, or None.

    The environment of a process names its task. If a program has cleared its environment, its ancestors name the task.
    The witness of a task is found by the record that it has open, because its environment is that of the launcher.
    """
    for each in ancestors(pid):
        if name_of(each) in (KEEPER_NAME, WITNESS_NAME):
            return _task_of_keeper(each)
        found = setting_of(each, "OUTLIVE_TASK")
        if found.isalnum():
            return found
    return None


def _task_of_keeper(pid: int) -> str | None:
    """Return the id of the task for which a keeper or a witness works."""
    try:
        opened = opened_by(pid)
    except OSError:
        return None
    for path in opened:
        before, found, after = path.rpartition("/attempts/")
        if found and after.endswith("/record") and os.path.basename(os.path.dirname(before)) == "tasks":
            return os.path.basename(before)
    return None


def directory_of(pid: int) -> str | None:
    """Return the current directory of a process, or None if it cannot be read."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return None


def describe_owner(listener: Listener, near: str) -> str:
    """Return who has a listener open, such as `t7k2 vite in ../other`.

    The directory of the owner is written relative to the directory `near`, if that is shorter.
    """
    pid = next(iter(listener.pids), None)
    if pid is None:
        return f"a process of uid {listener.user}"
    task, directory = task_of(pid), directory_of(pid)
    program, space, arguments = command_line(pid).partition(" ")
    command = one_line(masked(os.path.basename(program) + space + arguments), _COMMAND_COLUMNS)
    who = f"pid {pid} {command}" if task is None else f"task {task} {command}"
    if directory is None:
        return who
    if directory == near:
        return f"{who} in the same directory"
    relative = os.path.relpath(directory, near)
    return f"{who} in {relative if len(relative) < len(directory) else directory}"

"""The rights and settings that a child process of this thread would inherit.

Settings, such as the environment, can be sent to the spawner, the process that launches tasks. Rights cannot be sent,
because a process inherits them from its parent. So a spawner with other rights than the calling thread must not launch
tasks for this thread.
"""

from __future__ import annotations

import os
import resource

from outlive.domain.errors import Unavailable, hint_after
from outlive.linux.syscalls import read_proc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_STATUS = (
    *("Uid", "Gid", "Groups", "NoNewPrivs", "Seccomp", "Seccomp_filters"),
    *("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"),
)
_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid_for_children", "time_for_children", "user", "uts")
_LIMITS = [number for name, number in vars(resource).items() if name.startswith("RLIMIT_")]


def inherited() -> dict[str, Any]:
    """Return what a command inherits if this thread launches it.

    Open file descriptors are not included. `rights` decides which spawner process can launch the command.
    """
    try:
        status = _status()
        allowed = _rights(status)
    except OSError as error:
        raise _unreadable(error) from error
    return {
        "rights": allowed,
        "environ": dict(os.environ),
        "umask": int(status.get("Umask", "0022"), 8),
        "limits": tuple((number, resource.getrlimit(number)) for number in _LIMITS),
    }


def rights() -> tuple[object, ...]:
    """Return the rights that a child process of this thread would have."""
    try:
        return _rights(_status())
    except OSError as error:
        raise _unreadable(error) from error


def _rights(status: dict[str, str]) -> tuple[object, ...]:
    """Return the rights of this thread, with the process id before them.

    With the process id, a forked child of the program has other rights than its parent. So it never uses the parent's
    spawner process.
    """
    return (
        os.getpid(),
        *(status.get(name) for name in _STATUS),
        _root(),
        *map(_namespace, _NAMESPACES),
        _read("cgroup"),
        os.getpriority(os.PRIO_PROCESS, 0),
        os.sched_getscheduler(0),
        frozenset(os.sched_getaffinity(0)),
    )


def _root() -> tuple[object, ...]:
    """Return values that identify the root directory and its mount.

    The path is `/` for every process, even in a chroot. The inode is not enough either: the same directory can be
    mounted at several places, with different mounts below it.
    """
    fd = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        found = os.fstat(fd)
        return found.st_dev, found.st_ino, _read(f"fdinfo/{fd}")
    finally:
        os.close(fd)


def _namespace(name: str) -> str | None:
    try:
        return os.readlink(f"/proc/thread-self/ns/{name}")
    except OSError:
        return None  # this kernel does not have such a namespace


def _status() -> dict[str, str]:
    lines = _read("status").splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def _unreadable(error: OSError) -> Unavailable:
    return Unavailable(f"/proc cannot be read: {error.strerror}", hint_after(error, "mount /proc; nothing was started"))


def _read(name: str) -> str:
    return read_proc(f"/proc/thread-self/{name}").decode("utf-8", "replace")

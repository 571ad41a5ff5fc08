"""The check that a state directory is not in use through two mounts at once.

Processes that use two mounts of one directory do not see each other's locks, so records would be lost. A new device
number does not prove that there is a second mount, because the root of a restarted container also gets a new number.
The proof is a living process that has a file of this directory open on another device, and that also sees a probe file
made in this directory. This module is loaded only when the device number has changed.
"""

from __future__ import annotations

import os

from outlive.bundle.atomic_file import temporary_name
from outlive.domain.errors import Unavailable
from outlive.linux.syscalls import FIRST_PID_NAMESPACE, born_at, file_system_magic, pid_namespace

_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def signature(path: str) -> str:
    """Return a string that identifies a directory and its file system."""
    return f"{file_system_magic(path)} {os.lstat(path).st_ino} {born_at(os.fsencode(path))}"


def check_single(path: str, pinned: str) -> None:
    """Raise Unavailable if the directory may be in use through another mount.

    `pinned` is the recorded signature of the earlier mount, or an empty string. In a container, this process cannot see
    all other processes. So in a container, the error is raised, too, if the signatures show that the earlier mount may
    still be in use.
    """
    found = _user_elsewhere(path)
    if found is not None:
        pid, there = found
        raise Unavailable(
            f"the state directory {path} is also reached through another mount (process {pid} uses it as {there})",
            "use only one path to it, or wait until this process has ended; two mounts do not see each other's locks",
        )
    if pid_namespace() != FIRST_PID_NAMESPACE and _is_same_behind_another(signature(path), pinned):
        raise Unavailable(
            f"the state directory {path} was used through another mount, and this container cannot see"
            " whether that mount is still in use",
            f"end the processes that use it there, then delete {path}/place; or set OUTLIVE_HOME to another directory",
        )


def _is_same_behind_another(here: str, pinned: str) -> bool:
    """Return whether two signatures belong to one directory on two file systems.

    An overlay, for example, shows the directories of another file system.
    """
    type_here, *directory_here = here.split()
    type_there, *directory_there = pinned.split() or [""]
    return type_here != type_there and directory_here == directory_there and directory_here[1] != "0"


def _user_elsewhere(path: str) -> tuple[int, str] | None:
    """Return the pid of a process that uses the directory on another device.

    Also returns the directory's path as that process sees it. Returns None if no such process is found.
    """
    name, device = os.path.basename(path), os.lstat(path).st_dev
    probe = temporary_name(f"{path}/probe")
    os.close(os.open(probe, _MAKE, 0o600))
    try:
        for pid in os.listdir("/proc"):
            if not pid.isdigit() or int(pid) == os.getpid():
                continue
            for there in _directories_used(pid, name, device):
                if os.path.exists(f"/proc/{pid}/root{there}/{os.path.basename(probe)}"):
                    return int(pid), there
    finally:
        os.unlink(probe)
    return None


def _directories_used(pid: str, name: str, device: int) -> set[str]:
    """Return the directories called `name` in which a process has an open file.

    Directories on `device` are left out.
    """
    found = set()
    try:
        numbers = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return set()  # this process may not inspect the other process, or the other process is gone
    for number in numbers:
        try:
            target = os.readlink(f"/proc/{pid}/fd/{number}")
            before, middle, _ = target.partition(f"/{name}/")
            if middle and os.stat(f"/proc/{pid}/fd/{number}").st_dev != device:
                found.add(f"{before}/{name}")
        except OSError:
            continue
    return found

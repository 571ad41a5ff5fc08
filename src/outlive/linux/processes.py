"""Process identities that stay unique when a process id is reused.

From kernel 6.9 on, the inode of a pidfd is unique until the next boot. For older kernels, an identity contains the
start time as well. A signal is sent only through a pidfd whose identity was verified after the pidfd was opened.
"""

from __future__ import annotations

import os
import sys

from outlive.domain.value import Value
from outlive.linux.syscalls import boot_id, pid_namespace, read_proc, read_small

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# The names by which Outlive's own processes are distinguished from the processes of a task.
KEEPER_NAME, WITNESS_NAME = "outlive-keeper", "outlive-witness"
_MARKER = "outlive-own"
_STOPPED = (b"T", b"Z", b"X")
_FORKED_ONLY = 0x40  # PF_FORKNOEXEC: the kernel clears this flag when an exec cannot fail any more
_MOST_DESCRIPTORS = 1 << 30  # larger than any descriptor number; the kernel closes a range of any size in one call


def close_all_but(keep: tuple[int, ...]) -> None:
    """Close all descriptors except 0 to 2 and those in `keep`.

    The descriptors of the copy of Outlive's code, from which a process may import, also stay open.
    """
    # A process that uses a copy of Outlive's code has loaded `outlive.code_copy` already. A process without a copy has
    # no such descriptors, so this function does not import that module.
    copied = sys.modules.get("outlive.code_copy")
    kept = sorted({2, *keep, *(() if copied is None else copied.carried_fds())})
    for before, after in zip(kept, (*kept[1:], _MOST_DESCRIPTORS), strict=True):
        os.closerange(before + 1, after)


class Identity(Value):
    """The facts that distinguish a process from all others with the same pid."""

    pid: int
    inode: int
    start: int
    boot: str
    namespace: int


def identify(pid: int) -> Identity:
    """Return the identity of this process or of an unreaped child.

    The identity distinguishes the process from later ones with the same pid. For any other process, the kernel could
    give the pid to a new process while this function reads the facts.
    """
    pidfd = os.pidfd_open(pid)
    try:
        return Identity(
            pid=pid,
            inode=os.fstat(pidfd).st_ino,
            start=start_ticks(pid) or 0,
            boot=boot_id(),
            namespace=pid_namespace(),
        )
    finally:
        os.close(pidfd)


def open_verified(identity: Identity) -> int | None:
    """Return a pidfd of the identified process, or None if the process is gone.

    For a zombie, which is dead but not reaped, a pidfd is returned, too.
    """
    if identity.boot != boot_id() or identity.namespace != pid_namespace():
        return None
    try:
        pidfd = os.pidfd_open(identity.pid)
    except OSError:
        return None
    if os.fstat(pidfd).st_ino != identity.inode or start_ticks(identity.pid) != identity.start:
        os.close(pidfd)
        return None
    return pidfd


def has_exited(pidfd: int) -> bool:
    """Return whether the process of a pidfd has ended. A zombie counts as ended."""
    from select import POLLIN, poll  # noqa: PLC0415 - importing `select` loads a shared library, and hooks need only process names and arguments from this module

    waiting = poll()
    waiting.register(pidfd, POLLIN)
    return bool(waiting.poll(0))


def start_ticks(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot.

    Returns None if there is no such process.
    """
    fields = stat_fields(pid)
    return int(fields[19]) if fields else None


def stat_fields(pid: int) -> list[bytes] | None:
    """Return the fields of /proc/PID/stat that follow the name of the process.

    Returns None if there is no such process.
    """
    try:
        return read_small(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return None


def has_executed(pid: int) -> bool | None:
    """Return whether a process has executed a program since its fork.

    Returns None if there is no such process. A dead process that is not reaped yet still gives the correct result.

    During an exec, the kernel clears the flag PF_FORKNOEXEC before it closes descriptors. So a parent may call this
    function as soon as the child's end of a pipe is closed, even if a signal killed the child at that time.
    """
    fields = stat_fields(pid)
    return None if fields is None else not int(fields[6]) & _FORKED_ONLY


def open_marker() -> int:
    """Open a file that marks this process as one of Outlive's own processes.

    A process that runs an attempt needs no marker, because it has the attempt's record file open. An idle keeper, for
    example, has no record file open.
    """
    return os.memfd_create(_MARKER)


def has_marker(opened: Iterable[str]) -> bool:
    """Return whether a process has the file open that marks Outlive's processes.

    `opened` are the paths of all files that the process has open.
    """
    return any(path.startswith(f"/memfd:{_MARKER}") for path in opened)


def is_stopped(pid: int) -> bool:
    """Return whether a process is stopped or dead.

    Returns False if a tracer has stopped the process.
    """
    return (stat_fields(pid) or [b"X"])[0] in _STOPPED


def opened_by(pid: int) -> list[str]:
    """Return the paths of all files that a process has open.

    Raises OSError if this process may not inspect the other process.
    """
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            continue
    return found


def is_held_open(path: str) -> bool:
    """Return whether another process has a file open.

    Only processes that this process may inspect are checked.
    """
    try:
        wanted = os.stat(path)
    except OSError:
        return False
    for pid in os.listdir("/proc"):
        try:
            fds = os.listdir(f"/proc/{pid}/fd") if pid.isdigit() and int(pid) != os.getpid() else ()
        except OSError:
            continue  # this process may not inspect the other process, or the other process is gone
        for fd in fds:
            try:
                found = os.stat(f"/proc/{pid}/fd/{fd}")
            except OSError:
                continue
            if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
                return True
    return False


def name_of(pid: int) -> str:
    """Return the kernel's short name of a process.

    Returns an empty string if the process is gone.
    """
    try:
        return read_small(f"/proc/{pid}/comm").strip().decode("utf-8", "backslashreplace")
    except OSError:
        return ""


def words_of(pid: int) -> list[str]:
    """Return a process's arguments, or an empty list if the process is gone."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return [os.fsdecode(word) for word in file.read().split(b"\0")]
    except OSError:
        return []


def setting_of(pid: int, name: str) -> str:
    """Return the value of an environment variable at the start of a process.

    Returns an empty string if the variable is missing or cannot be read.
    """
    try:
        words = read_proc(f"/proc/{pid}/environ").split(b"\0")
    except OSError:
        return ""
    start = f"{name}=".encode("ascii")
    return next((os.fsdecode(word.removeprefix(start)) for word in words if word.startswith(start)), "")


def settings_of(pid: int) -> dict[str, str]:
    """Return the environment that a process had at its start.

    Returns an empty dictionary if the environment cannot be read.
    """
    try:
        words = read_proc(f"/proc/{pid}/environ").split(b"\0")
    except OSError:
        return {}
    pairs = (os.fsdecode(word).partition("=") for word in words if b"=" in word)
    return {name: text for name, _, text in pairs}


def command_line(pid: int) -> str:
    """Return a process's command line as readable text.

    If the command line cannot be read or is empty, the short name in brackets is returned.
    """
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(4096).rstrip(b"\0").split(b"\0")
        if words != [b""]:
            return b" ".join(words).decode("utf-8", "backslashreplace")
    except OSError:
        pass
    return f"[{name_of(pid) or '?'}]"

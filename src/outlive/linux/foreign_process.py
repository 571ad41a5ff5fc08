"""Facts about a process that Outlive did not start: command, directory, output."""

from __future__ import annotations

import os
import stat
import time

from outlive.domain.value import Value
from outlive.linux.processes import Identity, command_line, has_exited, identify, start_ticks, stat_fields, words_of
from outlive.linux.syscalls import read_small

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_STDOUT, _STDERR = 1, 2


class ForeignProcess(Value):
    """A living process that Outlive did not start."""

    identity: Identity
    argv: tuple[str, ...]
    command: str
    cwd: str
    user: int
    started_s: float
    """When the process was started, in seconds since the epoch."""
    output: str | None
    """The regular file to which standard output goes, or else standard error.

    None if neither goes to a regular file.
    """
    output_fd: int | None
    output_size: int
    goes_to: str
    """The file, pipe or terminal of standard output, as the link in /proc names it."""


def observe_process(pid: int) -> ForeignProcess | None:
    """Return the facts about a process, or None if there is no such process.

    Raises PermissionError if this process may not inspect the other process.
    """
    try:
        pidfd = os.pidfd_open(pid)
    except (OSError, OverflowError):
        return None
    try:
        found = _observe(pid)
        # If the process has ended meanwhile, the facts may describe a new process with the same pid. So drop the facts.
        return None if has_exited(pidfd) else found
    except (FileNotFoundError, ProcessLookupError):
        return None
    finally:
        os.close(pidfd)


def _observe(pid: int) -> ForeignProcess:
    identity = identify(pid)
    output_fd, status = _output(pid)
    return ForeignProcess(
        identity=identity,
        argv=tuple(word for word in words_of(pid) if word),
        command=command_line(pid),
        cwd=os.readlink(f"/proc/{pid}/cwd"),
        user=os.stat(f"/proc/{pid}").st_uid,
        started_s=time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + identity.start / os.sysconf("SC_CLK_TCK"),
        output=None if output_fd is None else os.readlink(f"/proc/{pid}/fd/{output_fd}"),
        output_fd=output_fd,
        output_size=0 if status is None else status.st_size,
        goes_to=_link(f"/proc/{pid}/fd/{_STDOUT}"),
    )


def _output(pid: int) -> tuple[int | None, os.stat_result | None]:
    """Return 1 or 2, whichever goes to a regular file, and the file's stat result.

    Standard output (1) is checked first. Returns None and None if neither standard output nor standard error goes to a
    regular file.
    """
    for number in (_STDOUT, _STDERR):
        try:
            found = os.stat(f"/proc/{pid}/fd/{number}")
        except FileNotFoundError:
            continue
        if stat.S_ISREG(found.st_mode):
            return number, found
    return None, None


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return "nothing"


def ancestors(pid: int) -> Iterator[int]:
    """Yield the ids of a process and of its ancestors, nearest first."""
    while pid > 0:
        yield pid
        fields = stat_fields(pid)
        pid = int(fields[1]) if fields else 0


def holders_of(path: str) -> list[int]:
    """Return the ids of the processes whose output goes to a file, oldest first.

    Only processes that this process may inspect are found.
    """
    try:
        wanted = os.stat(path)
    except OSError:
        return []
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        for number in (_STDOUT, _STDERR):
            try:
                seen = os.stat(f"/proc/{name}/fd/{number}")
            except OSError:
                continue
            if (seen.st_dev, seen.st_ino) == (wanted.st_dev, wanted.st_ino):
                found.append(int(name))
                break
    return sorted(found, key=lambda pid: (start_ticks(pid) or 0, pid))


def is_kernel_thread(pid: int) -> bool:
    """Return whether a process is a kernel thread, which runs no user program."""
    return not read_small(f"/proc/{pid}/cmdline") and _link(f"/proc/{pid}/exe") == "nothing"

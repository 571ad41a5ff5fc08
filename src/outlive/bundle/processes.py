"""Which process is meant: identities that survive the reuse of a process id.

A pid alone names whoever has it now. The inode of a pidfd (kernel 6.9) is never given twice in
one boot; the start time is kept beside it for older kernels. A signal is sent only through a
pidfd whose identity was verified after it was opened.
"""

from __future__ import annotations

import os
from select import POLLIN, poll

from outlive.bundle.kernel import boot_id, pid_namespace, read_small
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# What our own processes call themselves, so that they are told from a task's.
KEEPER_NAME, WITNESS_NAME = "outlive-keeper", "outlive-witness"
_BADGE = "outlive-own"
_STOPPED = (b"T", b"Z", b"X")
_MOST_DESCRIPTORS = 1 << 30  # closed by one call each, however many numbers lie between


def close_all_but(keep: tuple[int, ...]) -> None:
    """Close every descriptor but the first three and these."""
    kept = sorted({2, *keep})
    for before, after in zip(kept, (*kept[1:], _MOST_DESCRIPTORS), strict=True):
        os.closerange(before + 1, after)


class Identity(Value):
    """One process, told apart from every other that had or will have its number."""

    pid: int
    inode: int
    start: int
    boot: str
    namespace: int


def identify(pid: int) -> Identity:
    """The identity of a living process (our own child, or ourselves)."""
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
    """A pidfd of exactly this process while it lives (or is an unreaped zombie); else None."""
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
    """Whether the process behind a pidfd has ended, reaped or not."""
    waiting = poll()
    waiting.register(pidfd, POLLIN)
    return bool(waiting.poll(0))


def start_ticks(pid: int) -> int | None:
    """The start time in clock ticks since boot, or None if there is no such process."""
    fields = stat_fields(pid)
    return int(fields[19]) if fields else None


def stat_fields(pid: int) -> list[bytes] | None:
    """The fields of /proc/PID/stat after the name: state first, parent second."""
    try:
        return read_small(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return None


def wear_badge() -> int:
    """A descriptor by which a process of ours is known also while it has nothing to do with any task."""
    return os.memfd_create(_BADGE)


def has_badge(opened: Iterable[str]) -> bool:
    """Whether one of these open files is such a badge."""
    return any(path.startswith(f"/memfd:{_BADGE}") for path in opened)


def is_stopped(pid: int) -> bool:
    """Whether a process does nothing until somebody lets it, or never again; one that is traced does."""
    return (stat_fields(pid) or [b"X"])[0] in _STOPPED


def opened_by(pid: int) -> list[str]:
    """What a process has open, by path; OSError if that is not ours to see.

    It may close some of it while we look: what can still be read counts.
    """
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            continue
    return found


def is_held_open(path: str) -> bool:
    """Whether any process that we may look at has this file open."""
    try:
        wanted = os.stat(path)
    except OSError:
        return False
    for pid in os.listdir("/proc"):
        try:
            fds = os.listdir(f"/proc/{pid}/fd") if pid.isdigit() and int(pid) != os.getpid() else ()
        except OSError:
            continue  # not ours to see, or gone
        for fd in fds:
            try:
                found = os.stat(f"/proc/{pid}/fd/{fd}")
            except OSError:
                continue
            if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
                return True
    return False


def name_of(pid: int) -> str:
    """The short name the kernel has for a process; empty if there is no such process."""
    try:
        return read_small(f"/proc/{pid}/comm").strip().decode("utf-8", "backslashreplace")
    except OSError:
        return ""


def words_of(pid: int) -> list[str]:
    """What a process was started with; empty if it does not tell."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return [os.fsdecode(word) for word in file.read().split(b"\0")]
    except OSError:
        return []


def command_line(pid: int) -> str:
    """What a process was started as, for people; its bare name if it hides the rest."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(4096).rstrip(b"\0").split(b"\0")
        if words != [b""]:
            return b" ".join(words).decode("utf-8", "backslashreplace")
    except OSError:
        pass
    return f"[{name_of(pid) or '?'}]"

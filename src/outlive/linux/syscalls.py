"""Kernel calls that Python's standard library lacks, each as one plain function.

Every launch loads this module. The public modules `signal` and `ctypes` are slow to import (ADR 0004), so this module
imports the C modules behind them. Functions that a launch does not need import `ctypes` when they are called.
"""

from __future__ import annotations

import os
import sys
from _ctypes import Array, CFuncPtr, _SimpleCData, call_function, dlopen, dlsym, get_errno
from errno import EACCES, ENOSYS, EPERM
from fcntl import ioctl

from outlive.domain.errors import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

__all__ = [
    "FIRST_PID_NAMESPACE",
    "SYS_ADMIN",
    "become_subreaper",
    "boot_id",
    "born_at",
    "borrow_descriptor",
    "check_pidfd",
    "confinement",
    "die_with",
    "exit_status_of",
    "file_system_magic",
    "give_back_memory",
    "has_capability",
    "has_limited_cpu_time",
    "keep_freed_memory",
    "live_without_parent",
    "name_process",
    "open_straight",
    "open_within",
    "pid_namespace",
    "punch_hole",
    "read_proc",
    "read_small",
    "signal",
    "take_short_turns",
    "watch_modifications",
]

SYS_ADMIN = 21
FIRST_PID_NAMESPACE = 0xEFFFFFFC
"""The fixed inode number of the kernel's first PID namespace.

In this namespace, every process of the machine is visible.
"""
_PR_SET_CHILD_SUBREAPER, _PR_SET_NAME, _PR_SET_PDEATHSIG = 36, 15, 1
_PUNCH_HOLE_KEEP_SIZE = 0x02 | 0x01
_PIDFD_GET_INFO = (3 << 30) | (64 << 16) | (0xFF << 8) | 11
_PIDFD_INFO_EXIT = 1 << 3
_IN_MODIFY = 0x2
_SET_SCHEDULING = {"x86_64": 314, "aarch64": 274}
_SHORTEST_TURN_NS = 100_000
_STATX = {"x86_64": 332, "aarch64": 291}
_AT_SYMLINK_NOFOLLOW, _STATX_BTIME, _STATX_BYTES = 0x100, 0x800, 256


class _Long(_SimpleCData):  # type: ignore[type-arg]
    """A 64-bit argument of a call. Plain integers are passed as 32 bits."""

    _type_ = "l"


class _Byte(_SimpleCData):  # type: ignore[type-arg]
    """A byte that the kernel may write."""

    _type_ = "c"


class _StatxAnswer(Array):  # type: ignore[type-arg]
    """The buffer into which statx writes."""

    _type_ = _Byte
    _length_ = _STATX_BYTES


class _Call(CFuncPtr):
    """A function of the C library that sets errno, which reports an error."""

    _flags_ = 1 | 8  # FUNCFLAG_CDECL, and FUNCFLAG_USE_ERRNO, which stores errno for `get_errno`
    _restype_ = _Long


_program = dlopen(None, 0)  # type: ignore[arg-type]
_known: dict[str, str] = {}  # facts about this process or the system that do not change while the process runs
_prctl = dlsym(_program, "prctl")
_fallocate = dlsym(_program, "fallocate")
_syscall = dlsym(_program, "syscall")
try:
    _mallopt: int | None = dlsym(_program, "mallopt")
    _malloc_trim: int | None = dlsym(_program, "malloc_trim")
except OSError:
    _mallopt = _malloc_trim = None  # the C library is not glibc
_M_TRIM_THRESHOLD = -1
_PIDFD_GETFD = 438  # pidfd_getfd has this number on every architecture
_syscall_with_errno = _Call(_syscall)
_OPENAT2, _HERE = _Long(437), _Long(-100)
# The argument of openat2 for `open_straight`. Its three fields have 64 bits each: flags (O_PATH, O_NOFOLLOW,
# O_CLOEXEC), an empty mode, and RESOLVE_NO_SYMLINKS.
_STRAIGHT = b"".join(n.to_bytes(8, "little") for n in (os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, 0, 4))
_HOW_SIZE = _Long(len(_STRAIGHT))
# The argument of openat2 for `open_within`: flags (O_PATH, O_DIRECTORY, O_CLOEXEC), an empty mode, and
# RESOLVE_IN_ROOT.
_WITHIN = b"".join(n.to_bytes(8, "little") for n in (os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, 0, 16))


def become_subreaper() -> None:
    """Let this process become the parent of orphaned descendants, in place of init."""
    call_function(_prctl, (_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def die_with(parent: int) -> bool:
    """Let the kernel kill this process when its parent dies.

    The parent is the thread that forked this process. Returns False if the parent is dead already.
    """
    call_function(_prctl, (_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0))
    return os.getppid() == parent  # the parent may have died before the call above


def live_without_parent() -> None:
    """Undo `die_with`: the next executed program may outlive its parent."""
    call_function(_prctl, (_PR_SET_PDEATHSIG, 0, 0, 0, 0))


def name_process(name: str) -> None:
    """Set the name that `ps` and /proc/PID/comm show.

    The kernel keeps only the first fifteen bytes.
    """
    call_function(_prctl, (_PR_SET_NAME, name.encode("ascii"), 0, 0, 0))


def borrow_descriptor(pid: int, number: int) -> int | None:
    """Return a copy of another process's descriptor, or None if that is impossible."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return None
    try:
        found = int(call_function(_syscall, (_Long(_PIDFD_GETFD), _Long(pidfd), _Long(number), _Long(0))))
    finally:
        os.close(pidfd)
    return found if found >= 0 else None


def has_capability(number: int) -> bool:
    """Return whether this process has a capability in effect."""
    for line in read_small("/proc/self/status").splitlines():
        if line.startswith(b"CapEff:"):
            return bool(int(line.split()[1], 16) >> number & 1)
    return False


def has_limited_cpu_time() -> bool:
    """Return whether the kernel will kill this process after some CPU time.

    The limit is read from /proc, because importing `resource` would take eight times as long.
    """
    try:
        lines = read_small("/proc/self/limits").splitlines()
    except OSError:
        return False
    return any(line.startswith(b"Max cpu time") and line.split()[-2] != b"unlimited" for line in lines)


def confinement() -> str:
    """Return this process's no_new_privs flag and seccomp filters as one string.

    Two processes with different strings are restricted in different ways.
    """
    wanted = (b"NoNewPrivs:", b"Seccomp:", b"Seccomp_filters:")
    found = [line.split()[1] for line in read_small("/proc/self/status").splitlines() if line.startswith(wanted)]
    return b"-".join(found).decode("ascii")


def punch_hole(fd: int, start: int, length: int) -> bool:
    """Free the blocks of a span of a file.

    Returns False if the file system cannot free the blocks.
    """
    span = (_Long(start), _Long(length))
    return bool(call_function(_fallocate, (fd, _PUNCH_HOLE_KEEP_SIZE, *span)) == 0)


def open_straight(path: bytes) -> int:
    """Open a path for inspection, if no name before the last one is a symbolic link.

    A symbolic link at the last name is not followed. Returns the descriptor, or the negative errno. Missing files are a
    common result, so no exception is raised. ENOENT also shows that there is no symbolic link before the missing name.
    """
    found = int(_syscall_with_errno(_OPENAT2, _HERE, path, _STRAIGHT, _HOW_SIZE))
    return found if found >= 0 else -get_errno()


def open_within(root: int, path: bytes) -> int:
    """Open a directory below `root`, which counts as the root directory.

    Neither `..` nor a symbolic link leads out of `root`. Returns the descriptor, or the negative errno.
    """
    found = int(_syscall_with_errno(_OPENAT2, _Long(root), path, _WITHIN, _HOW_SIZE))
    return found if found >= 0 else -get_errno()


def check_pidfd() -> None:
    """Raise Unavailable if the kernel or a seccomp filter forbids pidfd_open.

    Without pidfd_open, a later process with the same pid might be killed instead of a task's process.
    """
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        if error.errno not in (ENOSYS, EPERM, EACCES):
            return  # another error, such as no free descriptor, says nothing about pidfd_open
        raise Unavailable(
            f"pidfd_open is not allowed here ({error.strerror}), so Outlive cannot safely signal a task's processes",
            "use Linux 5.3 or newer; in a container, allow pidfd_open in the seccomp profile",
        ) from error


def born_at(path: bytes) -> int:
    """Return a file's creation time in nanoseconds since 1970, or 0 if unknown.

    The inode alone does not identify a directory, because a new directory may get the inode of a deleted one.
    """
    number = _STATX.get(os.uname().machine)
    if number is None:
        return 0
    answer = _StatxAnswer()
    asked = (_Long(number), _HERE, path, _Long(_AT_SYMLINK_NOFOLLOW), _Long(_STATX_BTIME), answer)
    content = bytes(answer) if _syscall_with_errno(*asked) == 0 else bytes(_STATX_BYTES)
    if not int.from_bytes(content[:4], sys.byteorder) & _STATX_BTIME:
        return 0
    seconds = int.from_bytes(content[80:88], sys.byteorder, signed=True)
    return seconds * 10**9 + int.from_bytes(content[88:92], sys.byteorder)


def file_system_magic(path: str) -> int:
    """Return the number of a path's file system type, as in statfs(2)."""
    import ctypes  # noqa: PLC0415 - `ctypes` is slow to import, and this function is called once per boot

    buffer = ctypes.create_string_buffer(256)
    _checked(ctypes.CDLL(None, use_errno=True).statfs(os.fsencode(path), buffer))
    return int.from_bytes(buffer.raw[:4], sys.byteorder)


def watch_modifications(path: str) -> int | None:
    """Return a descriptor that becomes readable when a file is written to.

    Returns None if the file cannot be watched. Processes that wait for a task or display its output may use this
    function. A keeper must not use it: by default, a user has only 128 inotify instances, which are too few for many
    keepers. Keepers use `F_NOTIFY` instead.
    """
    import ctypes  # noqa: PLC0415 - a launch does not need `ctypes`, which is slow to import

    libc = ctypes.CDLL(None, use_errno=True)
    fd = int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    if fd < 0:
        return None
    if libc.inotify_add_watch(fd, os.fsencode(path), _IN_MODIFY) < 0:
        os.close(fd)
        return None
    return fd


def drain(watch: int) -> bool:
    """Read all pending events, so that only a later write makes `watch` readable.

    `watch` is a descriptor from `watch_modifications`. Returns whether there was an event.
    """
    was_pending = False
    try:
        while os.read(watch, 1 << 16):
            was_pending = True
    except BlockingIOError:
        pass
    return was_pending


def _checked(result: int) -> int:
    if result < 0:
        import ctypes  # noqa: PLC0415

        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def exit_status_of(pidfd: int) -> int | None:
    """Return the wait status of an ended process that is not this process's child.

    Returns None before Linux 6.15.
    """
    info = bytearray(64)
    info[0:8] = _PIDFD_INFO_EXIT.to_bytes(8, sys.byteorder)
    try:
        ioctl(pidfd, _PIDFD_GET_INFO, info)
    except OSError:
        return None
    mask = int.from_bytes(info[0:8], sys.byteorder)
    return int.from_bytes(info[60:64], sys.byteorder, signed=True) if mask & _PIDFD_INFO_EXIT else None


def read_small(path: str) -> bytes:
    """Return the content of a short /proc file, with fewer system calls than `open`."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)


def read_proc(path: str) -> bytes:
    """Return the whole content of a file of /proc, with few system calls."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = [os.read(fd, 1 << 16)]
        while parts[-1]:
            parts.append(os.read(fd, 1 << 16))
        return b"".join(parts)
    finally:
        os.close(fd)


def keep_freed_memory() -> None:
    """Let the C library keep freed memory, to avoid page faults in later allocations."""
    if _mallopt is not None:
        call_function(_mallopt, (_M_TRIM_THRESHOLD, 1 << 20))


def give_back_memory() -> None:
    """Return freed memory to the kernel. This is called before a long idle time."""
    if _malloc_trim is not None:
        call_function(_malloc_trim, (0,))


def take_short_turns() -> None:
    """Request short time slices that begin early for this thread.

    The task waits for this thread at every observed call.
    """
    policy, machine = os.sched_getscheduler(0), os.uname().machine
    if policy != os.SCHED_OTHER or machine not in _SET_SCHEDULING:
        return
    from _struct import Struct  # noqa: PLC0415 - only a keeper that observes needs this module

    form, nice = Struct("<IIQiIQQQ"), os.getpriority(os.PRIO_PROCESS, 0)
    wanted = form.pack(form.size, policy, 0, nice, 0, _SHORTEST_TURN_NS, 0, 0)
    call_function(_syscall, (_Long(_SET_SCHEDULING[machine]), _Long(0), wanted, _Long(0)))


def boot_id() -> str:
    """Return the id of this boot, or an empty string if /proc does not show the id."""
    if "boot" not in _known:
        try:
            _known["boot"] = read_small("/proc/sys/kernel/random/boot_id").strip().decode("ascii")
        except OSError:
            return ""
    return _known["boot"]


def pid_namespace() -> int:
    """Return the PID namespace to which this process's ids belong, or 0 if unknown.

    The result is not cached: a forked child may be in another namespace.
    """
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0

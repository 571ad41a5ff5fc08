"""The kernel calls that Python's standard library lacks, each as one plain function.

Every launch and every keeper loads this, so it takes the C modules behind two dear public ones
(ADR 0004): `signal`, which wraps each constant in an enum, and `ctypes`, of which two calls are
needed here. What only viewers need imports `ctypes` when it is used.
"""

from __future__ import annotations

import os
import sys
from _ctypes import Array, CFuncPtr, _SimpleCData, call_function, dlopen, dlsym, get_errno
from fcntl import ioctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

__all__ = [
    "SYS_ADMIN",
    "become_subreaper",
    "boot_id",
    "born_at",
    "borrow_descriptor",
    "confinement",
    "exit_status_of",
    "file_system_magic",
    "give_back_memory",
    "has_capability",
    "has_limited_cpu_time",
    "keep_freed_memory",
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
_PR_SET_CHILD_SUBREAPER, _PR_SET_NAME = 36, 15
_PUNCH_HOLE_KEEP_SIZE = 0x02 | 0x01
_PIDFD_GET_INFO = (3 << 30) | (64 << 16) | (0xFF << 8) | 11
_PIDFD_INFO_EXIT = 1 << 3
_IN_MODIFY = 0x2
_SET_SCHEDULING = {"x86_64": 314, "aarch64": 274}
_SHORTEST_TURN_NS = 100_000
_STATX = {"x86_64": 332, "aarch64": 291}
_AT_SYMLINK_NOFOLLOW, _STATX_BTIME, _STATX_BYTES = 0x100, 0x800, 256


class _Long(_SimpleCData):  # type: ignore[type-arg]
    """A 64-bit argument; plain integers are passed as 32."""

    _type_ = "l"


class _Byte(_SimpleCData):  # type: ignore[type-arg]
    """A byte that the kernel may write."""

    _type_ = "c"


class _StatxAnswer(Array):  # type: ignore[type-arg]
    """Where the kernel writes what it knows of a file."""

    _type_ = _Byte
    _length_ = _STATX_BYTES


class _Call(CFuncPtr):
    """A function of the C library that sets errno."""

    _flags_ = 1 | 8  # the platform's own convention; errno is kept for us
    _restype_ = _Long


_program = dlopen(None, 0)  # type: ignore[arg-type]
_known: dict[str, str] = {}  # what no process lives to see change
_prctl = dlsym(_program, "prctl")
_fallocate = dlsym(_program, "fallocate")
_syscall = dlsym(_program, "syscall")
try:
    _mallopt: int | None = dlsym(_program, "mallopt")
    _malloc_trim: int | None = dlsym(_program, "malloc_trim")
except OSError:
    _mallopt = _malloc_trim = None  # a C library other than glibc
_M_TRIM_THRESHOLD = -1
_PIDFD_GETFD = 438  # on every machine
_syscall_with_errno = _Call(_syscall)
_OPENAT2, _HERE = _Long(437), _Long(-100)
# What O_PATH, O_NOFOLLOW and O_CLOEXEC are, no mode, and RESOLVE_NO_SYMLINKS: three numbers of 64 bits.
_STRAIGHT = b"".join(n.to_bytes(8, "little") for n in (os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, 0, 4))
_HOW_SIZE = _Long(len(_STRAIGHT))
# What O_PATH, O_DIRECTORY and O_CLOEXEC are, no mode, and RESOLVE_IN_ROOT.
_WITHIN = b"".join(n.to_bytes(8, "little") for n in (os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, 0, 16))


def become_subreaper() -> None:
    """Orphans among our descendants become our children instead of init's."""
    call_function(_prctl, (_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def name_process(name: str) -> None:
    """What `ps` and /proc/PID/comm call us; the kernel keeps fifteen bytes."""
    call_function(_prctl, (_PR_SET_NAME, name.encode("ascii"), 0, 0, 0))


def borrow_descriptor(pid: int, number: int) -> int | None:
    """A copy of a descriptor of a process that is ours to look into; None if it is not, or is gone."""
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
    """Whether this process has a capability in effect."""
    for line in read_small("/proc/self/status").splitlines():
        if line.startswith(b"CapEff:"):
            return bool(int(line.split()[1], 16) >> number & 1)
    return False


def has_limited_cpu_time() -> bool:
    """Whether the kernel will kill this process when it has used so much; `resource` would cost eight times as much."""
    try:
        lines = read_small("/proc/self/limits").splitlines()
    except OSError:
        return False
    return any(line.startswith(b"Max cpu time") and line.split()[-2] != b"unlimited" for line in lines)


def confinement() -> str:
    """How this process is filtered, as a short word: who is filtered otherwise may be allowed something else."""
    wanted = (b"NoNewPrivs:", b"Seccomp:", b"Seccomp_filters:")
    found = [line.split()[1] for line in read_small("/proc/self/status").splitlines() if line.startswith(wanted)]
    return b"-".join(found).decode("ascii")


def punch_hole(fd: int, start: int, length: int) -> bool:
    """Give the blocks of a span back to the disk; False where the file system cannot."""
    span = (_Long(start), _Long(length))
    return bool(call_function(_fallocate, (fd, _PUNCH_HOLE_KEEP_SIZE, *span)) == 0)


def open_straight(path: bytes) -> int:
    """A descriptor to look at what a path names, if there is no link on the way; the last name may be one.

    Otherwise the error as the kernel has it, below zero: that nothing is there is too common to be raised. ENOENT
    also tells that there is no link before what is missing.
    """
    found = int(_syscall_with_errno(_OPENAT2, _HERE, path, _STRAIGHT, _HOW_SIZE))
    return found if found >= 0 else -get_errno()


def open_within(root: int, path: bytes) -> int:
    """A descriptor of the directory that a path leads to for somebody whose root is another one; or the error."""
    found = int(_syscall_with_errno(_OPENAT2, _Long(root), path, _WITHIN, _HOW_SIZE))
    return found if found >= 0 else -get_errno()


def born_at(path: bytes) -> int:
    """When what a path names was made, in nanoseconds since 1970; 0 where the file system does not know.

    Its number alone does not tell it from what is made later: the next directory may get the number of the last.
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
    """The type of the file system that a path lies on, as statfs(2) numbers them."""
    import ctypes  # noqa: PLC0415 - once per boot

    buffer = ctypes.create_string_buffer(256)
    _checked(ctypes.CDLL(None, use_errno=True).statfs(os.fsencode(path), buffer))
    return int.from_bytes(buffer.raw[:4], sys.byteorder)


def watch_modifications(path: str) -> int | None:
    """A descriptor that becomes readable when the file is written to; None if there is none left, or no such file.

    For viewers only: a user has 128 of these by default, so the many keepers use `F_NOTIFY`.
    """
    import ctypes  # noqa: PLC0415 - viewers only

    libc = ctypes.CDLL(None, use_errno=True)
    fd = int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    if fd < 0:
        return None
    if libc.inotify_add_watch(fd, os.fsencode(path), _IN_MODIFY) < 0:
        os.close(fd)
        return None
    return fd


def drain(watch: int) -> None:
    """Forget what has been written until now, so that a watch is readable again when more is."""
    try:
        while os.read(watch, 1 << 16):
            pass
    except BlockingIOError:
        pass


def _checked(result: int) -> int:
    if result < 0:
        import ctypes  # noqa: PLC0415

        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def exit_status_of(pidfd: int) -> int | None:
    """The wait status of an ended process that is not our child, if the kernel keeps it (6.15)."""
    info = bytearray(64)
    info[0:8] = _PIDFD_INFO_EXIT.to_bytes(8, sys.byteorder)
    try:
        ioctl(pidfd, _PIDFD_GET_INFO, info)
    except OSError:
        return None
    mask = int.from_bytes(info[0:8], sys.byteorder)
    return int.from_bytes(info[60:64], sys.byteorder, signed=True) if mask & _PIDFD_INFO_EXIT else None


def read_small(path: str) -> bytes:
    """The content of a short file of /proc, which comes in one read; `open` would cost five calls."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)


def read_proc(path: str) -> bytes:
    """The content of a file of /proc of any length, with as few calls as that takes."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = [os.read(fd, 1 << 16)]
        while parts[-1]:
            parts.append(os.read(fd, 1 << 16))
        return b"".join(parts)
    finally:
        os.close(fd)


def keep_freed_memory() -> None:
    """Do not give memory back to the kernel only to ask for it again: each page of it is a fault.

    For a process that lives for a moment more, or that others are forked from.
    """
    if _mallopt is not None:
        call_function(_mallopt, (_M_TRIM_THRESHOLD, 1 << 20))


def give_back_memory() -> None:
    """Give freed memory back to the kernel: for a process that is going to do nothing for a long time."""
    if _malloc_trim is not None:
        call_function(_malloc_trim, (0,))


def take_short_turns() -> None:
    """Let this thread have a processor soon rather than long, where the kernel can (6.12): others wait for it."""
    policy, machine = os.sched_getscheduler(0), os.uname().machine
    if policy != os.SCHED_OTHER or machine not in _SET_SCHEDULING:
        return
    from _struct import Struct  # noqa: PLC0415 - only who observes needs it

    form, nice = Struct("<IIQiIQQQ"), os.getpriority(os.PRIO_PROCESS, 0)
    wanted = form.pack(form.size, policy, 0, nice, 0, _SHORTEST_TURN_NS, 0, 0)
    call_function(_syscall, (_Long(_SET_SCHEDULING[machine]), _Long(0), wanted, _Long(0)))


def boot_id() -> str:
    """This boot of this kernel; empty where the kernel does not tell."""
    if "boot" not in _known:
        try:
            _known["boot"] = read_small("/proc/sys/kernel/random/boot_id").strip().decode("ascii")
        except OSError:
            return ""
    return _known["boot"]


def pid_namespace() -> int:
    """The namespace that our process ids mean something in; 0 where it cannot be known.

    A process stays in the one that it was born in, but its children need not: asked each time.
    """
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0

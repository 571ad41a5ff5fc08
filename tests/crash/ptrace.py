"""The ptrace(2) calls that the crash harness needs, and the names of system calls.

Only this module uses the kernel's tracing interface. The module `tree` decides what to do with a traced process. The
harness attaches with PTRACE_SEIZE and not with PTRACE_TRACEME, for three reasons. It can then distinguish a job-control
stop from the signal that caused it. It can leave a process stopped. A new child of a traced process reports an event,
and not a SIGSTOP that could also come from another sender.

The number of a call can be read on every architecture. Letting a call fail needs registers, and works on x86-64 only.
"""

import ctypes
import os
import platform
import re
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final

SYSCALL: Final = 24  # resume until the next entry or exit of a system call
CONT: Final = 7  # resume until a signal, a fork, an exec or the end of the process
LISTEN: Final = 0x4208  # leave a process stopped, and report its events
_POKEUSER: Final = 6
_GETEVENTMSG: Final = 0x4201
_SEIZE: Final = 0x4206
_GET_SYSCALL_INFO: Final = 0x420E

FORK_EVENTS: Final = frozenset({1, 2, 3})  # fork, vfork, clone
EVENT_STOP: Final = 128
SYSCALL_STOP: Final = signal.SIGTRAP | 0x80
STOP_SIGNALS: Final = frozenset({signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})
_WAIT_ALL: Final = 0x40000000  # __WALL: wait for threads too, and for children whose end sends no SIGCHLD

# TRACESYSGOOD marks system call stops. TRACEFORK, TRACEVFORK and TRACECLONE attach the new process. TRACEEXEC
# replaces the SIGTRAP of an exec. EXITKILL kills the tracees if the tracer dies.
_OPTIONS: Final = 0x01 | 0x02 | 0x04 | 0x08 | 0x10 | 0x100000

_PR_SET_CHILD_SUBREAPER: Final = 36
_X86_RAX: Final = 10 * 8
_X86_ORIG_RAX: Final = 15 * 8
_MAP_ANONYMOUS: Final = 0x20

ENTRY: Final = 1
# ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK: only a tracer sees these results, when a
# signal has interrupted a call that the kernel then restarts.
RESTARTS: Final = frozenset({-512, -513, -514, -516})

_libc: Final = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


class CallStop(ctypes.Structure):
    """The kernel's `struct ptrace_syscall_info`. It is the same on every architecture."""

    _fields_ = (
        ("stage", ctypes.c_uint8),  # ENTRY at the entry of a call, another value at its exit
        ("arch", ctypes.c_uint32),
        ("instruction_pointer", ctypes.c_uint64),
        ("stack_pointer", ctypes.c_uint64),
        ("value", ctypes.c_int64),  # the number of the call at its entry, and the result at its exit
        ("args", ctypes.c_uint64 * 6),
        ("_seccomp", ctypes.c_uint64),
    )
    stage: int
    value: int
    args: ctypes.Array[ctypes.c_uint64]


_stop: Final = CallStop()
_stop_address: Final = ctypes.addressof(_stop)
_stop_size: Final = ctypes.sizeof(_stop)


def _ptrace(request: int, pid: int, address: int = 0, data: int = 0) -> int:
    result: int = _libc.ptrace(request, pid, address, data)
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"ptrace request {request:#x} on {pid}: {os.strerror(code)}")
    return result


def _exit_code(program: Callable[[], object]) -> int:
    try:
        try:
            result = program()
        except SystemExit as error:
            result = error.code if isinstance(error.code, int) else int(error.code is not None)
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001 - a KeyboardInterrupt ends the program too
        traceback.print_exc()
        sys.stderr.flush()
        return 70
    return result if isinstance(result, int) else 0


def fork_traced(prepare: Callable[[], object], program: Callable[[], object]) -> int:
    """Fork a child that calls `prepare` and then `program`. Only the calls of `program` are traced."""
    pid = os.fork()
    if pid == 0:
        try:
            prepare()
            os.kill(os.getpid(), signal.SIGSTOP)
            os._exit(_exit_code(program))
        finally:
            os._exit(71)  # After any exception, the child must not continue with the code of its parent.
    os.waitpid(pid, os.WUNTRACED)
    try:
        _ptrace(_SEIZE, pid, 0, _OPTIONS)
    except OSError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    os.kill(pid, signal.SIGCONT)  # The child still waits until the tracer resumes it.
    return pid


def resume(pid: int, request: int, signum: int = 0) -> None:
    """Continue a stopped traced process, and deliver the signal `signum` if it is not 0."""
    _ptrace(request, pid, 0, signum)


def new_child(pid: int) -> int:
    """Return the id of the process that a traced process has just created by fork, vfork or clone."""
    message = ctypes.c_ulong()
    _ptrace(_GETEVENTMSG, pid, 0, ctypes.addressof(message))
    return message.value


def read_stop(pid: int) -> CallStop:
    """Return the system call at which a traced process has stopped. The next call overwrites the returned object."""
    _ptrace(_GET_SYSCALL_INFO, pid, _stop_size, _stop_address)
    return _stop


def skip_call(pid: int) -> None:
    """Let a process that enters a system call skip the call. The number of the call becomes -1, which has no effect."""
    _ptrace(_POKEUSER, pid, _X86_ORIG_RAX, 2**64 - 1)


def set_result(pid: int, result: int) -> None:
    """At the exit of a system call, set the result that the program gets."""
    _ptrace(_POKEUSER, pid, _X86_RAX, result % 2**64)


def take_stops() -> tuple[list[tuple[int, int]], bool]:
    """Return all traced processes that have stopped or ended, and whether none is left.

    All stops are taken before any process is resumed. Otherwise, a busy process would keep the others from running.
    """
    stops: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG | _WAIT_ALL)
        except ChildProcessError:
            return stops, True
        if pid == 0:
            return stops, False
        stops.append((pid, status))


def become_subreaper() -> None:
    """Become the parent of orphaned descendants, in place of init."""
    if _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"cannot become a subreaper: {os.strerror(code)}")


def supported() -> str | None:
    """Return why this machine cannot run the harness, or None if it can."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return f"ptrace harness: not written for {platform.system()} on {platform.machine()}"
    major, minor = (int(part) for part in re.findall(r"\d+", platform.release())[:2])
    if (major, minor) < (5, 3):
        return f"ptrace harness: kernel {platform.release()} lacks PTRACE_GET_SYSCALL_INFO (5.3)"
    try:
        pid = fork_traced(lambda: None, lambda: None)
    except OSError as error:
        return f"ptrace harness: tracing is forbidden here: {error}"
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


# The table is here because the kernel's headers are often not installed, and a trace must have the same
# names on every machine.
_TABLE: Final = """
read:0 write:1 open:2 close:3 stat:4 fstat:5 lstat:6 poll:7 lseek:8 mmap:9 mprotect:10 munmap:11
brk:12 rt_sigaction:13 rt_sigprocmask:14 rt_sigreturn:15 ioctl:16 pread64:17 pwrite64:18 writev:20
access:21 pipe:22 sched_yield:24 mremap:25 madvise:28 dup:32 dup2:33 pause:34 nanosleep:35
setitimer:38 getpid:39 sendfile:40 sendmsg:46 recvmsg:47 socketpair:53 setsockopt:54 getsockopt:55
clone:56 fork:57 vfork:58 execve:59 exit:60 wait4:61 kill:62 uname:63 fcntl:72 flock:73 fsync:74
fdatasync:75 ftruncate:77 getcwd:79 chdir:80 fchdir:81 rename:82 mkdir:83 rmdir:84 link:86
unlink:87 symlink:88 readlink:89 chmod:90 fchmod:91 umask:95 gettimeofday:96 getrlimit:97
getrusage:98 getuid:102 getgid:104 geteuid:107 getegid:108 setpgid:109 getppid:110 getpgrp:111
setsid:112 getpgid:121 rt_sigtimedwait:128 rt_sigsuspend:130 sigaltstack:131 statfs:137 fstatfs:138
prctl:157 arch_prctl:158 setrlimit:160 sync:162 gettid:186 tkill:200 futex:202
sched_setaffinity:203 sched_getaffinity:204 getdents64:217 set_tid_address:218 restart_syscall:219
fadvise64:221 clock_gettime:228 clock_nanosleep:230 exit_group:231 epoll_wait:232 epoll_ctl:233
tgkill:234 waitid:247 openat:257 mkdirat:258 mknodat:259 newfstatat:262 unlinkat:263 renameat:264 linkat:265
symlinkat:266 readlinkat:267 fchmodat:268 faccessat:269 pselect6:270 ppoll:271 set_robust_list:273
utimensat:280 epoll_pwait:281 fallocate:285 epoll_create1:291 dup3:292 pipe2:293 prlimit64:302
syncfs:306 renameat2:316 getrandom:318 execveat:322 copy_file_range:326 statx:332 rseq:334
pidfd_send_signal:424 clone3:435 close_range:436 openat2:437 pidfd_open:434 faccessat2:439
"""


_NAMES: Final = {int(row.split(":")[1]): row.split(":")[0] for row in _TABLE.split()}
KNOWN_NAMES: Final = frozenset(_NAMES.values())
_HEAP_CALLS: Final = frozenset({"brk", "munmap", "mremap", "madvise", "mprotect"})


# A write to a pipe goes to another process, so a failing disk does not affect it.
PIPE_WRITE: Final = "write (pipe)"


def name_of(number: int) -> str:
    """Return the name of a system call, or its number as text if it is unknown."""
    return _NAMES.get(number) or str(number)


def name_at(pid: int, stop: CallStop) -> str:
    """Return the name of the call that a process is about to make."""
    name = name_of(stop.value)
    if name != "write":
        return name
    try:
        target = os.readlink(f"/proc/{pid}/fd/{stop.args[0]}")
    except OSError:
        return name
    return PIPE_WRITE if target.startswith("pipe:") else name


def is_heap_call(name: str, stop: CallStop) -> bool:
    """Return whether a memory allocator made a system call. Such calls have no effect on other processes."""
    return name in _HEAP_CALLS or (name == "mmap" and bool(stop.args[3] & _MAP_ANONYMOUS))


def current_call(pid: int) -> str | None:
    """Return the system call that blocks a process, or None if the process is running or gone."""
    try:
        number = Path(f"/proc/{pid}/syscall").read_text().split()[0]
    except (OSError, IndexError):
        return None
    return name_of(int(number)) if number.isdecimal() else None


def current_processor() -> int:
    """Return the number of the CPU on which this process runs.

    The number is field 39 of /proc/self/stat.
    """
    return int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[36])


def parent_of(pid: int) -> int:
    """Return the id of the parent of a process or thread, or 0 if the process is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    leader = int(status["Tgid"])
    return leader if leader != pid else int(status["PPid"])

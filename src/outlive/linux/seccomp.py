"""The seccomp filter that reports some system calls before they happen.

The kernel sends the reported calls to a descriptor, the listener, and each call waits for an answer. The filter reports
calls that change names, contents or the file to which a path leads. The filter also reports exec, connect, and calls
that install another filter. Other calls, such as reads, run at full speed. Every answer is "continue". If no process
has the listener open, the reported calls fail. So two processes, the keeper and the witness, have the listener open.
The two processes share a memory page, into which the kernel writes each reported call.
"""

from __future__ import annotations

import os
from _ctypes import call_function, dlsym
from _struct import Struct
from fcntl import ioctl

from outlive.linux.syscalls import _Long, _program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mmap import mmap

_X86_64, _I386, _AARCH64 = 0xC000003E, 0x40000003, 0xC00000B7
SOCKETCALL, SOCKETCALL_BIND, SOCKETCALL_CONNECT = "socketcall", 2, 3
SET_MODE_STRICT, SET_MODE_FILTER, NEW_LISTENER, PR_SET_SECCOMP = 0, 1, 8, 22
INSTRUCTION, RETURN, RET_TRACE, RET_ASK = Struct("<HBBI"), 0x06, 0x7FF00000, 0x7FC00000
# The reported calls and their numbers, by architecture.
CALLS: dict[int, dict[str, int]] = {
    _X86_64: {
        "open": 2,
        "openat": 257,
        "openat2": 437,
        "creat": 85,
        "truncate": 76,
        "open_by_handle_at": 304,
        "rename": 82,
        "renameat": 264,
        "renameat2": 316,
        "unlink": 87,
        "unlinkat": 263,
        "rmdir": 84,
        "mkdir": 83,
        "mkdirat": 258,
        "link": 86,
        "linkat": 265,
        "symlink": 88,
        "symlinkat": 266,
        "mknod": 133,
        "mknodat": 259,
        "chdir": 80,
        "fchdir": 81,
        "mount": 165,
        "umount2": 166,
        "move_mount": 429,
        "chroot": 161,
        "setns": 308,
        "pivot_root": 155,
        "io_uring_setup": 425,
        "execve": 59,
        "execveat": 322,
        "connect": 42,
        "bind": 49,
        "seccomp": 317,
        "prctl": 157,
        "fanotify_init": 300,
    },
    _I386: {
        "open": 5,
        "openat": 295,
        "openat2": 437,
        "creat": 8,
        "truncate": 92,
        "truncate64": 193,
        "rename": 38,
        "renameat": 302,
        "renameat2": 353,
        "unlink": 10,
        "unlinkat": 301,
        "rmdir": 40,
        "mkdir": 39,
        "mkdirat": 296,
        "link": 9,
        "linkat": 303,
        "symlink": 83,
        "symlinkat": 304,
        "mknod": 14,
        "mknodat": 297,
        "chdir": 12,
        "fchdir": 133,
        "mount": 21,
        "umount2": 52,
        "move_mount": 429,
        "chroot": 61,
        "setns": 346,
        "pivot_root": 217,
        "io_uring_setup": 425,
        "execve": 11,
        "execveat": 358,
        "connect": 362,
        "bind": 361,
        "open_by_handle_at": 342,
        SOCKETCALL: 102,
        "seccomp": 354,
        "prctl": 172,
        "fanotify_init": 338,
    },
    _AARCH64: {
        "openat": 56,
        "openat2": 437,
        "truncate": 45,
        "open_by_handle_at": 265,
        "renameat": 38,
        "renameat2": 276,
        "unlinkat": 35,
        "mkdirat": 34,
        "linkat": 37,
        "symlinkat": 36,
        "mknodat": 33,
        "chdir": 49,
        "fchdir": 50,
        "mount": 40,
        "umount2": 39,
        "move_mount": 429,
        "chroot": 51,
        "setns": 268,
        "pivot_root": 41,
        "io_uring_setup": 425,
        "execve": 221,
        "execveat": 281,
        "connect": 203,
        "bind": 200,
        "seccomp": 277,
        "prctl": 167,
        "fanotify_init": 262,
    },
}
_MACHINES = {"x86_64": (317, (_X86_64, _I386)), "aarch64": (277, (_AARCH64,))}
CHANGING_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

_LOAD, _EQUAL, _ANY_BIT, _ALLOW = 0x20, 0x15, 0x45, 0x7FFF0000
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16
_PR_SET_NO_NEW_PRIVS = 38
_DECIDING = 4 | 8  # FAN_CLASS_CONTENT, FAN_CLASS_PRE_CONTENT: groups that decide whether others may open files
# Calls that are reported only for some arguments. A row has the number of the argument, the kind of test, and the
# values for the test. An open is reported if it could change a file. Older 32-bit programs use one call, socketcall,
# for all socket operations. Only its operations bind and connect are reported.
_ONLY: dict[str, tuple[int, int, tuple[int, ...]]] = {
    "open": (1, _ANY_BIT, (CHANGING_FLAGS,)),
    "openat": (2, _ANY_BIT, (CHANGING_FLAGS,)),
    SOCKETCALL: (0, _EQUAL, (SOCKETCALL_BIND, SOCKETCALL_CONNECT)),
    "seccomp": (0, _EQUAL, (SET_MODE_STRICT, SET_MODE_FILTER)),
    "prctl": (0, _EQUAL, (PR_SET_SECCOMP,)),
    "fanotify_init": (0, _ANY_BIT, (_DECIDING,)),
}
# The flags of the seccomp filter. NEW_LISTENER returns the descriptor that receives the calls. SPEC_ALLOW (4) does not
# change speculative execution. With WAIT_KILLABLE_RECV (32, from Linux 5.19 on), only a fatal signal interrupts a call
# that was received.
_FLAGS, _FLAGS_BEFORE_5_19 = NEW_LISTENER | 4 | 32, NEW_LISTENER | 4
_RECEIVE, _SEND, _SET_FLAGS = 0xC0502100, 0xC0182101, 0x40082104
_CONTINUE = 1
_ANSWER, _FPROG = Struct("=QqiI"), Struct("@HQ")
CALL = Struct("=QIIiIQ6Q")
"""A received system call, as the kernel writes it.

The fields are id, thread, flags, number, machine, instruction and six arguments.
"""
OPENAT = Struct("=QI4xiI8x3Q")
"""The fields that are read from a received openat call.

These are id, thread, number, machine, directory, path and flags.
"""
_EMPTY = bytes(CALL.size)
_assembled: dict[str, bytes] = {}

_syscall, _prctl = dlsym(_program, "syscall"), dlsym(_program, "prctl")


def is_known_machine() -> bool:
    """Return whether the system call numbers of this processor architecture are known."""
    return os.uname().machine in _MACHINES


def assemble(machine: str) -> bytes:
    """Return the seccomp filter for a processor architecture, in the kernel's format."""
    program = [INSTRUCTION.pack(_LOAD, 0, 0, _MACHINE_AT)]
    for which in _MACHINES[machine][1]:
        block = _block(CALLS[which])
        program.append(INSTRUCTION.pack(_EQUAL, 0, len(block), which))
        program += block
    program.append(INSTRUCTION.pack(RETURN, 0, 0, _ALLOW))
    return b"".join(program)


def _block(calls: dict[str, int]) -> list[bytes]:
    """Return the seccomp filter's instructions for one processor architecture.

    `calls` are the system calls to report. The last two instructions allow a call or report it.
    """
    sometimes = [(calls[name], *test) for name, test in _ONLY.items() if name in calls]
    always = [number for name, number in calls.items() if name not in _ONLY]
    allow = 1 + sum(2 + len(values) for *_, values in sometimes) + len(always)
    block = [INSTRUCTION.pack(_LOAD, 0, 0, _NUMBER_AT)]
    for number, argument, test, values in sometimes:
        block.append(INSTRUCTION.pack(_EQUAL, 0, 1 + len(values), number))
        block.append(INSTRUCTION.pack(_LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument))
        for value in values:
            past = len(block) + 1
            otherwise = allow - past if value == values[-1] else 0
            block.append(INSTRUCTION.pack(test, allow + 1 - past, otherwise, value))
    for number in always:
        block.append(INSTRUCTION.pack(_EQUAL, allow - len(block), 0, number))
    block.append(INSTRUCTION.pack(RETURN, 0, 0, _ALLOW))
    block.append(INSTRUCTION.pack(RETURN, 0, 0, RET_ASK))
    return block


def prepare_filter() -> bytes:
    """Return the seccomp filter of this machine.

    It is assembled only once, and forked processes inherit it.
    """
    machine = os.uname().machine
    if machine not in _assembled:
        _assembled[machine] = assemble(machine)
    return _assembled[machine]


def install(*, keep_privileges: bool) -> int | None:
    """Install the seccomp filter in this process and all its descendants.

    Returns the listener, the descriptor that receives the reported calls, or None if the kernel refuses the filter.
    Unless `keep_privileges` is set, no exec can gain privileges afterwards. The kernel requires this from a process
    without CAP_SYS_ADMIN.
    """
    machine = os.uname().machine
    program = prepare_filter()
    # The kernel needs the address of the instructions. They are the content of a bytes object, after its header.
    address = id(program) + bytes.__basicsize__ - 1
    fprog = _FPROG.pack(len(program) // INSTRUCTION.size, address)
    if not keep_privileges:
        call_function(_prctl, (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    number = _MACHINES[machine][0]
    for flags in (_FLAGS, _FLAGS_BEFORE_5_19):
        listener = int(call_function(_syscall, (_Long(number), _Long(SET_MODE_FILTER), _Long(flags), fprog)))
        if listener >= 0:
            return listener
    return None


def wake_on_same_processor(listener: int) -> None:
    """Let the calling and the answering process share a processor (from Linux 6.6 on).

    `listener` is the descriptor that receives the calls. No time is lost, because each of the two processes sleeps
    while the other one runs.
    """
    try:
        ioctl(listener, _SET_FLAGS, 1)
    except OSError:
        pass


def receive(listener: int, page: mmap) -> None:
    """Wait for the next reported call, which the kernel writes into the shared page.

    The kernel writes the call into the page before any code of this process runs. So if this process dies, the other
    process that shares the page can still answer the call.
    """
    page[: CALL.size] = _EMPTY
    ioctl(listener, _RECEIVE, page)


def received(page: mmap) -> int:
    """Return the id of the system call in the shared page, or 0 if there is none."""
    return int.from_bytes(page[:8], "little")


def let_continue(listener: int, call: int) -> bool:
    """Let a reported system call happen. Return False if the calling process is gone.

    `call` is the id of the system call.
    """
    # A bytearray is faster than bytes: for a buffer that cannot be written to, `ioctl` first makes an exception and
    # discards it.
    answer = bytearray(_ANSWER.pack(call, 0, 0, _CONTINUE))
    try:
        ioctl(listener, _SEND, answer)
    except OSError:
        return False
    return True

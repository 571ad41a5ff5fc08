"""A sandbox for tests: a script that forbids system calls and runs a command.

Usage: confined.py NUMBER[,NUMBER...] COMMAND...

A forbidden call fails with EPERM, as in many containers. This also holds for every process that the command starts.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _MODE_FILTER = 22, 38, 2
_ALLOW, _FAIL_WITH = 0x7FFF0000, 0x00050000
EPERM = 1
SECCOMP, PIDFD_GETFD, PIDFD_OPEN, OPENAT2, MKDIR, MKNOD = 317, 438, 434, 437, 83, 133


def forbid(*numbers: int) -> None:
    """Let the system calls with these numbers fail with EPERM from now on."""
    program = [struct.pack("<HBBI", 0x20, 0, 0, 0)]
    for number in numbers:
        program.append(struct.pack("<HBBI", 0x15, 0, 1, number))
        program.append(struct.pack("<HBBI", 0x06, 0, 0, _FAIL_WITH | EPERM))
    program.append(struct.pack("<HBBI", 0x06, 0, 0, _ALLOW))
    code = ctypes.create_string_buffer(b"".join(program))
    fprog = ctypes.create_string_buffer(struct.pack("@HQ", len(program), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() != 0:
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, fprog, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the filter was refused")


if __name__ == "__main__":
    forbid(*map(int, sys.argv[1].split(",")))
    os.execvp(sys.argv[2], sys.argv[2:])

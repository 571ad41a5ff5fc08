"""Checks for `outlive doctor`: whether this system ends tasks or leaves zombies."""

from __future__ import annotations

import os
import time

from outlive.linux.processes import name_of, stat_fields
from outlive.linux.syscalls import read_small

_LONGEST_REAPING_S = 2.0


def is_wsl(version: bytes | None = None) -> bool:
    """Return whether this system is Linux in WSL, according to `/proc/version`."""
    try:
        return b"microsoft" in (read_small("/proc/version") if version is None else version).lower()
    except OSError:
        return False


def init_that_reaps_nothing() -> str | None:
    """Return the name of process 1 if it never collects exited child processes.

    Such processes stay as zombies. Returns None if process 1 collects them, or if another process adopts orphans.
    """
    orphan = _leave_orphan()
    until = time.monotonic() + _LONGEST_REAPING_S
    while (fields := stat_fields(orphan)) is not None and time.monotonic() < until:
        if fields[0] == b"Z" and fields[1] not in (b"1", str(os.getpid()).encode("ascii")):
            return None  # another process than process 1 has adopted the orphan
        time.sleep(0.01)
    return None if fields is None else name_of(1)


def _leave_orphan() -> int:
    """Start a process whose parent exits, and return its process id.

    The process exits at once.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        orphan = os.fork()
        if orphan == 0:
            os.close(write)
            os.close(read)
            os._exit(0)
        os.write(write, str(orphan).encode("ascii"))
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    try:
        return int(os.read(read, 32))
    finally:
        os.close(read)

"""Checks for `outlive doctor` whether this system ends tasks or leaves zombies."""

from __future__ import annotations

import os
import time

from outlive.linux.processes import name_of, stat_fields
from outlive.linux.syscalls import read_small

_LONGEST_REAPING_S = 2.0


def is_wsl(version: bytes | None = None) -> bool:
    """Return whether this Linux runs in WSL, according to `/proc/version`."""
    try:
        return b"microsoft" in (read_small("/proc/version") if version is None else version).lower()
    except OSError:
        return False


def init_that_reaps_nothing() -> str | None:
    """Return the name of process 1 if it does not reap orphans.

    Returns None if a test orphan is reaped, or if a subreaper adopts it.
    """
    orphan = _leave_orphan()
    until = time.monotonic() + _LONGEST_REAPING_S
    while (fields := stat_fields(orphan)) is not None and time.monotonic() < until:
        if fields[0] == b"Z" and fields[1] not in (b"1", str(os.getpid()).encode("ascii")):
            return None  # a subreaper between process 1 and this process has adopted the orphan
        time.sleep(0.01)
    return None if fields is None else name_of(1)


def _leave_orphan() -> int:
    """Make an orphan process that ends at once, and return its process id."""
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

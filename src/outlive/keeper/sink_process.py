"""The deliverer: a process that sends all pending notices to sinks, and exits.

A sink is a receiver of notices that the user configured. The process that settles an attempt starts a deliverer, if a
sink has not got its notices and no deliverer is running. A deliverer runs in a new interpreter, so the keeper neither
waits for the deliverer nor uses the memory that a deliverer needs. If a deliverer dies, the process that settles the
next attempt starts another deliverer.
"""

from __future__ import annotations

import os
import sys
from fcntl import LOCK_EX, LOCK_NB, flock

from outlive.package_paths import package_directories

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home

_DELIVER = (
    "import sys; sys.path[:0] = {packages!r};"
    "from outlive.entry_points import deliver_to_sinks; deliver_to_sinks(sys.argv[1])"
)


def start_deliverer(home: Home) -> bool:
    """Start a process that delivers notices to sinks, unless one is running.

    A sink is a receiver of notices that the user configured. Returns whether a process was started.
    """
    turn = take_turn(home)
    if turn is None:
        return False
    os.close(turn)
    program = _DELIVER.format(packages=package_directories())
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-c", program, home.path],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, nothing, fd) for fd in (0, 1, 2)],
            setsid=True,
        )
    except OSError:
        return False
    finally:
        os.close(nothing)
    return True


def take_turn(home: Home) -> int | None:
    """Take the lock of the process that delivers notices, and return the lock.

    Returns None if another process has the lock.
    """
    fd = os.open(home.path + "/deliverer", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        flock(fd, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd

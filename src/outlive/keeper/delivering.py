"""Starting the deliverer: a process of its own that tells the sinks, and ends when nothing is owed.

Whoever settles starts it, if there is anything to deliver and nobody delivers already. It is a
fresh interpreter, so that a keeper holds nothing of it, and its end does not matter to anybody:
what is not delivered stays owed, and the next ending starts another one.
"""

from __future__ import annotations

import os
import sys
from fcntl import LOCK_EX, LOCK_NB, flock

from outlive.installation import package_directories

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home

_DELIVER = (
    "import sys; sys.path[:0] = {packages!r};"
    "from outlive.service.deliver import deliver_and_exit; deliver_and_exit(sys.argv[1])"
)


def start_deliverer(home: Home) -> bool:
    """Start a deliverer, unless somebody is at it; whether one was started."""
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
    """The lock of whoever delivers; None if somebody does."""
    fd = os.open(home.path + "/deliverer", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        flock(fd, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd

"""Leases: names that are valid only while the process that made them is alive.

A lease is a locked file. The kernel frees the lock when the process dies, so no timeout is needed.
"""

from __future__ import annotations

import os
import time
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from outlive.bundle.home import Home

_YOUNG_S = 3600
_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


class Lease:
    """A name that is valid until it is released or the process that made it ends."""

    def __init__(self, home: Home) -> None:
        self.name = os.urandom(8).hex()
        self._path = f"{home.leases}/{self.name}"
        try:
            self._fd = os.open(self._path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
        except FileNotFoundError:
            os.makedirs(home.leases, 0o700, exist_ok=True)
            self._fd = os.open(self._path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
        # The lock is free, because no other process knows the name of the file yet.
        flock(self._fd, LOCK_EX | LOCK_NB)

    def let_go(self) -> None:
        """Release the lease. Notices that are reserved in its name become free."""
        os.unlink(self._path)
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go()


def clear_leases(home: Home) -> None:
    """Delete the lock files of leases whose process has died.

    A lease is a name that is valid while its process is alive. Files that are less than an hour old are kept, because
    the process may not have locked them yet.
    """
    try:
        names = os.listdir(home.leases)
    except FileNotFoundError:
        return
    for name in names:
        try:
            if time.time() - os.stat(f"{home.leases}/{name}").st_mtime > _YOUNG_S:
                is_held(home, name)
        except OSError:
            continue


def is_held(home: Home, name: str) -> bool:
    """Return whether the process of a lease is alive. If not, delete its file.

    A lease is a name that is valid while its process is alive.
    """
    path = f"{home.leases}/{name}"
    try:
        fd = os.open(path, _FLAGS)
    except FileNotFoundError:
        return False
    try:
        # Take a shared lock. With exclusive locks, two processes that check at the same time would take each other for
        # the owner.
        flock(fd, LOCK_SH | LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    return False

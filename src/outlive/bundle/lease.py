"""Leases: a name that means something only as long as whoever took it lives.

A lease is a file whose lock is held. Its death, however it comes, is known at once and to
everybody; nobody has to guess from how long ago it was heard of.
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
    """A lease that is held until it is let go, or its process ends."""

    def __init__(self, home: Home) -> None:
        self.name = os.urandom(8).hex()
        self._path = f"{home.leases}/{self.name}"
        try:
            self._fd = os.open(self._path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
        except FileNotFoundError:
            os.makedirs(home.leases, 0o700, exist_ok=True)
            self._fd = os.open(self._path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
        # Nobody can have locked it: nobody knows its name before we say it.
        flock(self._fd, LOCK_EX | LOCK_NB)

    def let_go(self) -> None:
        """Give it up; what was held by it is nobody's."""
        os.unlink(self._path)
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go()


def clear_leases(home: Home) -> None:
    """Delete what killed holders left; a young one may be about to be locked."""
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
    """Whether somebody lives who holds this lease; what a dead one left is cleared away."""
    path = f"{home.leases}/{name}"
    try:
        fd = os.open(path, _FLAGS)
    except FileNotFoundError:
        return False
    try:
        # Shared: two who look at the same time must not take each other for the holder.
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

"""Directories below a top directory, entered one component at a time.

No symbolic link is followed, so a planted link cannot lead to another directory. No mount is crossed, so an unreachable
network file system does not block this process.
"""

from __future__ import annotations

import os
from errno import ELOOP, ENOENT, ENOTDIR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DEEPEST = 64
_NOT_THERE = (ENOENT, ENOTDIR, ELOOP)


class Barred(Exception):
    """The error for a directory that may exist, but must not or cannot be entered."""


class Directories:
    """The open directories from the top directory to the current one."""

    def __init__(self, top: str) -> None:
        self._names: list[bytes] = []
        self._fds = [os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
        self._device = os.fstat(self._fds[0]).st_dev

    def enter(self, directory: bytes) -> int | None:
        """Return a descriptor of a directory, which is valid until the next call.

        Returns None if the directory does not exist. Raises `Barred` if the directory must not or cannot be entered.
        """
        wanted = directory.split(b"/") if directory else []
        if len(wanted) > _DEEPEST or any(name in {b"", b".", b".."} for name in wanted):
            raise Barred
        shared = 0
        while shared < min(len(wanted), len(self._names)) and wanted[shared] == self._names[shared]:
            shared += 1
        self._leave(shared)
        for name in wanted[shared:]:
            try:
                fd = os.open(name, _OPEN, dir_fd=self._fds[-1])
            except OSError as error:
                if error.errno in _NOT_THERE:
                    return None
                raise Barred from error
            self._fds.append(fd)
            self._names.append(name)
            if os.fstat(fd).st_dev != self._device:
                self._leave(len(self._names) - 1)
                raise Barred
        return self._fds[-1]

    def _leave(self, depth: int) -> None:
        while len(self._names) > depth:
            self._names.pop()
            os.close(self._fds.pop())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in self._fds:
            os.close(fd)

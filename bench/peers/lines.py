"""The names of ended tasks, one per line, read from a server's event channel."""

from __future__ import annotations

import os
import select
import time


class Lines:
    """A reader of task names from a descriptor, which remembers each name.

    A name that arrives during the wait for another name is not lost.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._rest = b""
        self._seen: set[str] = set()

    def await_name(self, name: str, patience: float) -> str:
        """Wait until a task's name has arrived.

        Returns `told` then, `blocked` if the name has not arrived after `patience` seconds, or an error message.
        """
        deadline = time.monotonic() + patience
        while name not in self._seen:
            if not select.select([self._fd], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return "blocked"
            piece = os.read(self._fd, 65536)
            if not piece:
                return "error: the channel has closed"
            *names, self._rest = (self._rest + piece).split(b"\n")
            self._seen.update(name.decode() for name in names)
        return "told"

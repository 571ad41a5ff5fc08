"""Names from a server's event channel, one per line, read from a descriptor."""

from __future__ import annotations

import os
import select
import time


class Lines:
    """The names that have arrived.

    A name that arrives during the wait for another one is remembered.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._rest = b""
        self._seen: set[str] = set()

    def await_name(self, name: str, patience: float) -> str:
        """Wait until a name has arrived.

        Returns `told`, `blocked` after `patience` seconds, or an error.
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

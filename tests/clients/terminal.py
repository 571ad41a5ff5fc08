"""A terminal for clients whose sessions stay idle only in a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import threading
import time
from typing import TYPE_CHECKING

from tests.support import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

_BUSY_S = 3.0
# Queries that a client sends to its terminal, for the terminal's type and the cursor's position, and the replies.
_ANSWERS = {b"\x1b[c": b"\x1b[?62;22c", b"\x1b[6n": b"\x1b[1;1R"}


class Terminal:
    """A pseudo-terminal whose output is read, so that the client never blocks."""

    def __init__(self, words: Sequence[str], env: Mapping[str, str], cwd: Path) -> None:
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execve(words[0], list(words), dict(env))
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
        self.screen = b""
        self._is_open = True
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while self._is_open:
            if not select.select([self._fd], [], [], 0.1)[0]:
                continue
            try:
                part = os.read(self._fd, 65536)
            except OSError:
                return
            self.screen += part
            for question, answer in _ANSWERS.items():
                if question in part:
                    os.write(self._fd, answer)

    def enter(self, text: str, is_taken: Callable[[], bool]) -> None:
        """Enter a line, and press the Enter key after a pause, as a person does.

        Without the pause, the client would treat line and key as pasted text. A client that is busy drawing its screen
        ignores the key, so the key is pressed until the client has reacted.
        """
        os.write(self._fd, text.encode())
        time.sleep(0.5)
        os.write(self._fd, b"\r")
        pressed_at = time.monotonic()

        def is_done() -> bool:
            nonlocal pressed_at
            if not is_taken() and time.monotonic() - pressed_at > _BUSY_S:
                os.write(self._fd, b"\r")
                pressed_at = time.monotonic()
            return is_taken()

        wait_until(is_done, f"the reaction to {text!r}")

    def close(self) -> None:
        """Kill the client and close its terminal."""
        if not self._is_open:
            return
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)
        self._is_open = False
        self._thread.join()
        os.close(self._fd)

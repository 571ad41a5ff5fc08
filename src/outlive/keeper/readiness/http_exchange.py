"""One HTTP request that never blocks: a `GET`, and the status of its answer.

`http.client` would block, and then the end of the task would not be noticed during a slow answer.
"""

from __future__ import annotations

import os
import socket
from errno import EINPROGRESS
from select import POLLIN, POLLOUT

_LONGEST_STATUS_LINE = 4096
TAKES_AT_MOST_S = 10.0


class HttpExchange:
    """A request to one address and the beginning of its answer."""

    def __init__(self, address: str, port: int, host: str, path: str, now: float) -> None:
        self.endpoint = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        self._until = now + TAKES_AT_MOST_S
        name = f"[{host}]" if ":" in host else host
        lines = (f"GET {path} HTTP/1.1", f"Host: {name}:{port}", "Accept: */*", "Connection: close", "", "")
        self._unsent = "\r\n".join(lines).encode("utf-8", "surrogateescape")
        self._answer = b""
        self.status: int | None = None
        """The status of the answer. None until the answer has come."""
        self.failure: str | None = None
        """Why there is no answer. None as long as an answer may come."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        error = self._socket.connect_ex((address, port))
        if error not in (0, EINPROGRESS):
            self._fail(os.strerror(error).lower())

    @property
    def is_over(self) -> bool:
        """Whether the answer has come, or will not come."""
        return self.status is not None or self.failure is not None

    @property
    def awaited(self) -> tuple[int, int]:
        """The descriptor and the events of poll() with which the exchange goes on."""
        return self._socket.fileno(), POLLOUT if self._unsent else POLLIN

    def go_on(self, now: float) -> None:
        """Send and read as much as is possible without blocking."""
        try:
            while self._unsent and not self.is_over:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
            while not self.is_over:
                self._read()
        except BlockingIOError:
            if now >= self._until:
                self._fail(f"no answer within {TAKES_AT_MOST_S:.0f} s")
        except OSError as error:
            self._fail((error.strerror or "no connection").lower())

    def _read(self) -> None:
        content = self._socket.recv(_LONGEST_STATUS_LINE)
        self._answer += content
        line, end, _ = self._answer.partition(b"\n")
        if not end and content and len(self._answer) <= _LONGEST_STATUS_LINE:
            return
        words = line.split()
        if len(words) >= 2 and words[0].startswith(b"HTTP/") and words[1].isdigit():
            self.status = int(words[1])
            self.close()
        else:
            self._fail("the answer is not HTTP")

    def _fail(self, why: str) -> None:
        self.failure = why
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

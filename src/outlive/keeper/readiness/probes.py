"""The probes: one class for each kind of condition of readiness.

A probe never blocks. `holds` starts or continues a check, and returns whether the condition holds. `why_not` says what
is missing.
"""

from __future__ import annotations

import os
import signal
import subprocess
from select import POLLIN

from outlive.bundle.output import Piece, read_piece, size_of
from outlive.domain.tasks.readiness import url_parts
from outlive.domain.text.sanitize import masked, one_line
from outlive.domain.value import Value
from outlive.keeper.readiness.http_exchange import HttpExchange
from outlive.keeper.readiness.search_output import LineSearch
from outlive.linux.foreign_process import ancestors
from outlive.linux.processes import has_exited

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Protocol

    from outlive.bundle.attempt import AttemptFiles
    from outlive.domain.tasks.readiness import ReadyCondition
    from outlive.keeper.readiness.notify_socket import NotifySocket
    from outlive.linux.listeners import Listener

    FileState = tuple[int, int]
else:
    Protocol = object

COMMAND_TAKES_AT_MOST_S = 30.0
_CHUNK = 1 << 16
_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - no socket is bound to these addresses
_SHOWN_COLUMNS = 100


class Situation(Value):
    """What a probe may use: the time, and the task's processes and listeners."""

    now: float
    """The time of the monotonic clock."""
    pids: Callable[[], Collection[int]]
    """Returns the pids of the task's processes. The search for them takes time."""
    listeners: Sequence[Listener]
    """The listeners of the task. Empty if no condition is about a port."""


class Probe(Protocol):
    """The check of one condition."""

    condition: ReadyCondition
    why_not: str
    """What is missing, as a part of a sentence."""

    def holds(self, situation: Situation) -> bool:
        """Return whether the condition holds now."""

    def awaited(self) -> list[tuple[int, int]]:
        """Return descriptors and events of poll() after which `holds` may be true."""

    def close(self) -> None:
        """End a check that is not finished."""


class PortProbe:
    """A check whether a process of the task listens on a port."""

    def __init__(self, condition: ReadyCondition) -> None:
        self.condition = condition
        self.port = condition.port or 0
        self.why_not = f"no process of the task listens on port {self.port}"

    def holds(self, situation: Situation) -> bool:
        """Return whether a process of the task listens on the port."""
        return any(each.port == self.port for each in situation.listeners)

    def awaited(self) -> list[tuple[int, int]]:
        """Return no descriptors, because the kernel does not report a new listener."""
        return []

    def close(self) -> None:
        """Do nothing, because the check is always finished."""


class HttpProbe:
    """A check whether a server of the task answers an HTTP request.

    The request goes only to addresses on which a process of the task listens. So another server on the same port can
    never make the task look ready. The name `localhost` stands for 127.0.0.1 and ::1.
    """

    def __init__(self, condition: ReadyCondition) -> None:
        self.condition = condition
        self._host, self.port, self._path = url_parts(condition.value)
        self._exchange: HttpExchange | None = None
        self._tries = 0
        self.answered_at: str | None = None
        """The address and port that answered. None until an answer has come."""
        self.why_not = f"no process of the task listens on port {self.port}"

    def holds(self, situation: Situation) -> bool:
        """Send a request or continue one. Return whether a good answer has come."""
        if self._exchange is None:
            addresses = self._addresses(situation.listeners)
            if not addresses:
                self.why_not = f"no process of the task listens on port {self.port}"
                return False
            chosen = addresses[self._tries % len(addresses)]
            self._tries += 1
            self._exchange = HttpExchange(chosen, self.port, self._host, self._path, situation.now)
        self._exchange.go_on(situation.now)
        if not self._exchange.is_over:
            if self._tries == 1:  # later, the answer to the last request says more
                self.why_not = f"{self._exchange.endpoint} has not answered yet"
            return False
        done, self._exchange = self._exchange, None
        if done.status is not None and 200 <= done.status < 400:
            self.answered_at = done.endpoint
            return True
        self.why_not = f"{done.endpoint} answers {done.status}" if done.status else f"{done.endpoint}: {done.failure}"
        return False

    def _addresses(self, listeners: Sequence[Listener]) -> list[str]:
        """Return the addresses to ask: those of the task's own listeners."""
        found = [_WILDCARDS.get(each.address, each.address) for each in listeners if each.port == self.port]
        is_literal = ":" in self._host or self._host.replace(".", "").isdigit()
        return sorted({each for each in found if not is_literal or each == _WILDCARDS.get(self._host, self._host)})

    def awaited(self) -> list[tuple[int, int]]:
        """Return the descriptor of the connection, if a request is under way."""
        return [] if self._exchange is None else [self._exchange.awaited]

    def close(self) -> None:
        """Close the connection of an unfinished request."""
        if self._exchange is not None:
            self._exchange.close()


class LogProbe:
    """A search in the output of this attempt."""

    def __init__(self, condition: ReadyCondition, files: AttemptFiles) -> None:
        self.condition = condition
        self._files = files
        self._at = 0
        self._search = LineSearch(condition.value)
        self.why_not = f"no line of the output matches {condition.value!r}"

    def holds(self, _: Situation) -> bool:
        """Search the new output. Return whether a line matches."""
        if size_of(self._files) < self._at:
            # The command truncated its own output: new output begins at offset 0.
            self._at = 0
            self._search.search(Piece(start=0, content=b"", restarted=True))
        while (piece := read_piece(self._files, self._at, _CHUNK)).content:
            self._at = piece.end
            if self._search.search(piece) is not None:
                return True
        return False

    def awaited(self) -> list[tuple[int, int]]:
        """Return no descriptors, because poll() does not report that a file has grown."""
        return []

    def close(self) -> None:
        """Do nothing, because the search is always finished."""


class FileProbe:
    """A check whether a file exists that the attempt has made or changed."""

    def __init__(self, condition: ReadyCondition, cwd: str, known: dict[str, FileState]) -> None:
        self.condition = condition
        self._path = os.path.join(cwd, condition.value)
        self._known = known.get(condition.value)
        self.why_not = f"there is no file {condition.value}"

    def holds(self, _: Situation) -> bool:
        """Return whether the file exists and differs from the known file."""
        state = state_of_file(self._path)
        if state is not None and state == self._known:
            self.why_not = f"the file {self.condition.value} is older than this attempt"
        return state is not None and state != self._known

    def awaited(self) -> list[tuple[int, int]]:
        """Return no descriptors, because the file may be on any file system."""
        return []

    def close(self) -> None:
        """Do nothing, because the check is always finished."""


def state_of_file(path: str) -> FileState | None:
    """Return the inode and the time of the last change, or None without a file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns


class CommandProbe:
    """A check with a shell command, which succeeds when the task is ready."""

    def __init__(self, condition: ReadyCondition, cwd: str, environ: dict[str, str]) -> None:
        self.condition = condition
        self._cwd, self._environ = cwd, environ
        self._running: subprocess.Popen[bytes] | None = None
        self._pidfd, self._output, self._until = -1, -1, 0.0
        self.why_not = "the command has not succeeded yet"

    def holds(self, situation: Situation) -> bool:
        """Start the command or wait for its end. Return whether it has succeeded."""
        if self._running is None:
            self._start(situation.now)
        if self._running is None:
            return False
        if has_exited(self._pidfd):
            said = self._last_line()
            code = self._end()
            self.why_not = f"the command ended with exit code {code}{said}"
            return code == 0
        if situation.now >= self._until:
            self._end()
            self.why_not = f"the command did not end within {COMMAND_TAKES_AT_MOST_S:.0f} s"
        return False

    def _start(self, now: float) -> None:
        self._output = os.memfd_create("outlive-probe")
        try:
            self._running = subprocess.Popen(
                ["/bin/sh", "-c", self.condition.value],
                cwd=self._cwd,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                start_new_session=True,
            )
            self._pidfd = os.pidfd_open(self._running.pid)
        except OSError as error:
            self._end()
            self.why_not = f"the command cannot be started: {(error.strerror or '').lower()}"
        self._until = now + COMMAND_TAKES_AT_MOST_S

    def _last_line(self) -> str:
        size = os.fstat(self._output).st_size
        text = os.pread(self._output, _CHUNK, max(0, size - _CHUNK)).decode("utf-8", "replace").strip()
        return f": {one_line(masked(text.rpartition(chr(10))[2]), _SHOWN_COLUMNS)}" if text else ""

    def awaited(self) -> list[tuple[int, int]]:
        """Return the descriptor that becomes readable at the end of the command."""
        return [] if self._pidfd < 0 else [(self._pidfd, POLLIN)]

    def close(self) -> None:
        """Kill the command, if it runs."""
        self._end()

    def _end(self) -> int | None:
        """Kill the process group of the command, and return the exit code."""
        code = None
        if self._running is not None:
            # The shell is not reaped yet, even if it has exited. So its number cannot belong to another group.
            os.killpg(self._running.pid, signal.SIGKILL)
            code = self._running.wait()
        for fd in (self._pidfd, self._output):
            if fd >= 0:
                os.close(fd)
        self._running, self._pidfd, self._output = None, -1, -1
        return code


class NotifyProbe:
    """A wait for `READY=1` from a process of the task."""

    def __init__(self, condition: ReadyCondition, source: NotifySocket) -> None:
        self.condition = condition
        self._source = source
        self.why_not = "no process of the task has sent READY=1"

    def holds(self, situation: Situation) -> bool:
        """Read the messages. Return whether a process of the task is ready."""
        return self._source.has_told(lambda pid: _is_among(pid, frozenset(situation.pids())))

    def awaited(self) -> list[tuple[int, int]]:
        """Return the socket, which is readable when a message has come."""
        return [(self._source.fd, POLLIN)]

    def close(self) -> None:
        """Do nothing, because the socket belongs to the caller."""


def _is_among(pid: int, ours: frozenset[int]) -> bool:
    """Return whether a process or one of its ancestors is one of the task's processes.

    A process that has exited, but was not reaped yet, is not one of the task's living processes. But its parent is.
    """
    return any(each in ours for each in ancestors(pid))

"""The connection of a program to its spawner, the process that launches its tasks.

The spawner is started at the first use. It is replaced when the calling thread has other rights than the spawner.
"""

from __future__ import annotations

import os
import socket
import sys
import threading

from outlive.domain import errors
from outlive.domain.errors import Unavailable, hint_after
from outlive.package_paths import package_directories
from outlive.sdk.spawner import inherited
from outlive.sdk.spawner.serve_launches import frame, receive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MAIN = (
    "import sys; sys.path[:0] = sys.argv[2:];"
    "from outlive.entry_points import serve_spawner; serve_spawner(int(sys.argv[1]))"
)
_SPAWNER_FD = 3


class Spawner:
    """The connection to this program's spawner. Several threads may use this object."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._inode = 0
        os.register_at_fork(after_in_child=self.start_afresh)
        self._asking = 0
        self._for: tuple[object, ...] = ()

    def ask(self, request: dict[str, Any]) -> tuple[str, bool]:
        """Send a request to a spawner that has the rights of this thread.

        Returns the task's id, and whether an attempt was started.
        """
        rights = request.pop("rights", None) or inherited.rights()
        if self._asking == threading.get_ident():
            raise Unavailable(
                "a signal handler launches a task while the same thread is launching one",
                "let the handler set a flag, and launch the task after the first launch",
            )
        with self._lock:
            self._asking = threading.get_ident()
            try:
                answer = self._converse(request, rights)
            except BaseException:
                # This call was interrupted before it has read the reply. The next call would take this reply for its
                # own, so the connection must not be used any more.
                self._forget()
                raise
            finally:
                self._asking = 0
        if "error" in answer:
            raise _error(answer)
        return str(answer["task"]), bool(answer["started"])

    def _converse(self, request: dict[str, Any], rights: tuple[object, ...]) -> dict[str, Any]:
        message = frame(request)
        try:
            self._channel(rights).sendall(message, socket.MSG_NOSIGNAL)
        except OSError:
            # The spawner exited before it had received the whole request, so it has started nothing. So the request can
            # be sent to a new spawner.
            self._forget()
            try:
                self._channel(rights).sendall(message, socket.MSG_NOSIGNAL)
            except OSError as error:
                raise Unavailable(f"the spawner was killed twice: {error.strerror}", "try again") from error
        answer = receive(self._channel(rights).fileno())
        if answer is None:
            raise Unavailable(
                "the spawner was killed while it launched the task, so the task may run or not",
                "`outlive list` shows whether the task runs; with a key, a second launch is safe",
            )
        return answer

    def _channel(self, rights: tuple[object, ...]) -> socket.socket:
        """Return the socket of a spawner with these rights. Start one if necessary."""
        self._notice_loss()
        if self._socket is None or self._for != rights:
            self._replace(rights)
        if self._socket is None:
            raise Unavailable("the spawner could not be started", "check memory and open files")
        return self._socket

    def _replace(self, rights: tuple[object, ...]) -> None:
        self._forget()
        if not sys.executable:
            raise Unavailable(
                "this program does not know its Python interpreter", "set sys.executable to the path of the interpreter"
            )
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            raise Unavailable(f"the spawner cannot be started: {error}", hint_after(error, "check memory")) from error
        try:
            packages = package_directories()
            child = os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-c", _MAIN, str(_SPAWNER_FD), *packages],
                os.environ,
                file_actions=_file_actions(theirs.fileno()),
                setsid=True,
            )
        except OSError as error:
            ours.close()
            hint = hint_after(error, f"check memory, and that {sys.executable} may be executed")
            raise Unavailable(f"the spawner cannot be started: {error}", hint) from error
        finally:
            theirs.close()
        # The started process forks the spawner and exits, so that the spawner gets another parent. If that process
        # cannot import Outlive, it exits with an error.
        if _exit_code_of(child):
            ours.close()
            raise Unavailable(
                "the spawner cannot be started: the installation of Outlive was removed or is broken",
                "install Outlive again; tasks that run are not affected",
            )
        self._socket, self._inode, self._for = ours, os.fstat(ours.fileno()).st_ino, rights

    def _notice_loss(self) -> None:
        """Forget the socket if the program has closed its descriptor.

        A program may close all its descriptors, and then open another file with the same number. That file must not be
        used as the socket.
        """
        if self._socket is None:
            return
        try:
            is_ours = os.fstat(self._socket.fileno()).st_ino == self._inode
        except OSError:
            is_ours = False
        if not is_ours:
            self._socket.detach()
            self._socket = None

    def _forget(self) -> None:
        """Close the connection to the spawner process, which then exits."""
        self._notice_loss()
        if self._socket is not None:
            try:
                # A forked child of this program may have a copy of the socket. Because of the shutdown, the spawner
                # sees the end of the connection all the same.
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the spawner has exited already
            self._socket.close()
            self._socket = None

    def start_afresh(self) -> None:
        """Reset this object in a forked child process.

        When the fork happened, another thread may have had the lock. That thread does not exist in the child, so it
        would never release the lock. The child also closes its copy of the socket, because the spawner belongs to the
        parent.
        """
        self._lock = threading.Lock()
        self._asking = 0
        self._notice_loss()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def close(self) -> None:
        """End the spawner. The next request starts a new spawner."""
        with self._lock:
            self._forget()


def _exit_code_of(child: int) -> int:
    """Wait for a child process, and return its exit code, or 0 if it is not known.

    It is not known if the program ignores SIGCHLD, or waits for all its child processes itself.
    """
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except ChildProcessError:
        return 0


def _file_actions(theirs: int) -> list[tuple[int, ...]]:
    if theirs != _SPAWNER_FD:
        return [(os.POSIX_SPAWN_DUP2, theirs, _SPAWNER_FD)]
    # If a descriptor is copied to its own number, it is still closed when the new program starts. So it is first copied
    # to another number, and then back.
    spare = 200
    return [
        (os.POSIX_SPAWN_DUP2, theirs, spare),
        (os.POSIX_SPAWN_DUP2, spare, _SPAWNER_FD),
        (os.POSIX_SPAWN_CLOSE, spare),
    ]


def _error(answer: dict[str, Any]) -> errors.OutliveError:
    kind = getattr(errors, answer["error"], errors.Broken)
    if kind is errors.NotStarted:
        return errors.NotStarted(answer["message"], answer["hint"], answer["task"])
    error: errors.OutliveError = kind(answer["message"], answer["hint"])
    return error

"""The socket through which a server tells that it is ready (`NOTIFY_SOCKET`).

The protocol is that of systemd's `sd_notify`: a datagram with lines such as `READY=1`. The kernel adds the pid of the
sender (SCM_CREDENTIALS), so that a process outside of the task cannot report the task as ready.
"""

from __future__ import annotations

import os
import socket
import struct
from array import array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from outlive.bundle.attempt import AttemptFiles

_LONGEST_PATH = 107
_LARGEST_MESSAGE = 4096
_CREDENTIALS = struct.Struct("3i")
_MOST_DESCRIPTORS = 16
_ROOT = 0


class NotifySocket:
    """A datagram socket with the protocol of systemd's `sd_notify`."""

    def __init__(self, files: AttemptFiles) -> None:
        """Open the socket in the directory of an attempt, or with an abstract name.

        A path of more than 107 bytes does not fit into the address of a socket, so the name is then abstract. It is
        abstract for root, too: a server that root starts often changes its user before it is ready, and could not reach
        a path in a directory of root.
        """
        path = files.path + "/notify"
        self._path: str | None = path
        self.name = path
        if len(os.fsencode(path)) > _LONGEST_PATH or os.geteuid() == _ROOT:
            task = os.path.basename(files.bundle)
            self._path, self.name = None, f"@outlive-{task}-{files.number}-{os.urandom(8).hex()}"
        else:
            try:
                os.unlink(path)  # the keeper of this attempt was killed, and another keeper has adopted the attempt
            except FileNotFoundError:
                pass
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            self._socket.bind("\0" + self.name[1:] if self._path is None else self._path)
        except OSError:
            self._socket.close()
            raise

    @property
    def variable(self) -> dict[str, str]:
        """The environment variable for the command."""
        return {"NOTIFY_SOCKET": self.name}

    @property
    def fd(self) -> int:
        """The descriptor, which is readable when a message waits."""
        return self._socket.fileno()

    def has_told(self, is_ours: Callable[[int], bool]) -> bool:
        """Read all messages. Return whether one of the task's processes is ready.

        `is_ours` returns whether a pid is a process of the task. Messages of other processes are dropped, and so are
        messages of a process that has already ended, because its origin is not known any more.
        """
        is_ready = False
        while (message := self._receive()) is not None:
            lines, pid, fds = message
            if b"READY=1" in lines and is_ours(pid):
                is_ready = True
            # `systemd-notify` sends a descriptor with BARRIER=1, and stays alive until this descriptor is closed. So
            # the descriptors are closed only after the sender was checked.
            for fd in fds:
                os.close(fd)
        return is_ready

    def _receive(self) -> tuple[list[bytes], int, list[int]] | None:
        """Return the lines, the sender and the descriptors of a message, or None."""
        fds, pid = array("i"), 0
        space = socket.CMSG_SPACE(_CREDENTIALS.size) + socket.CMSG_SPACE(_MOST_DESCRIPTORS * fds.itemsize)
        try:
            content, extra, _, _ = self._socket.recvmsg(_LARGEST_MESSAGE, space, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return None
        for level, kind, data in extra:
            if level != socket.SOL_SOCKET:
                continue
            if kind == socket.SCM_CREDENTIALS:
                pid = _CREDENTIALS.unpack(data[: _CREDENTIALS.size])[0]
            elif kind == socket.SCM_RIGHTS:
                fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
        return content.split(b"\n"), pid, list(fds)

    def close(self) -> None:
        """Close the socket, and remove its path."""
        self._socket.close()
        if self._path is not None:
            try:
                os.unlink(self._path)
            except OSError:
                pass  # the files of the attempt were deleted

"""The passing of file descriptors, together with some bytes, through a socket."""

from __future__ import annotations

import os
import sys
from _socket import CMSG_LEN, MSG_CMSG_CLOEXEC, MSG_CTRUNC, MSG_NOSIGNAL, SCM_RIGHTS, SOL_SOCKET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Sequence

_HEAD, _NUMBER = 8, 4
_MOST = 32


def give(channel: socket, note: bytes, descriptors: Sequence[int]) -> None:
    """Send bytes and descriptors through a socket. Raise OSError if sending fails.

    `note` are the bytes. The descriptors stay open in this process.
    """
    numbers = b"".join(fd.to_bytes(_NUMBER, sys.byteorder) for fd in descriptors)
    channel.sendmsg([len(note).to_bytes(_HEAD, "big")], [(SOL_SOCKET, SCM_RIGHTS, numbers)], MSG_NOSIGNAL)
    channel.sendall(note, MSG_NOSIGNAL)


def take(channel: socket) -> tuple[bytes, list[int]] | None:
    """Return the bytes and the descriptors that the other process sends.

    Waits until both arrive. The caller must close the descriptors. Returns None if the other end of the socket is
    closed, or if this process has too few free descriptors.
    """
    try:
        head, rights, flags, _ = channel.recvmsg(_HEAD, CMSG_LEN(_NUMBER * _MOST), MSG_CMSG_CLOEXEC)
    except OSError:
        return None
    note = read_exactly(channel.fileno(), int.from_bytes(head, "big")) if len(head) == _HEAD else None
    if not note or not rights or flags & MSG_CTRUNC:
        return None  # MSG_CTRUNC: this process has too few free descriptors, so the kernel closed some of those sent
    numbers = rights[0][2]
    return note, [int.from_bytes(numbers[at : at + _NUMBER], sys.byteorder) for at in range(0, len(numbers), _NUMBER)]


def read_exactly(fd: int, size: int) -> bytes | None:
    """Read exactly `size` bytes. Return None if the connection ends or fails earlier."""
    parts = []
    while size:
        try:
            part = os.read(fd, min(size, 1 << 20))
        except OSError:
            return None
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)

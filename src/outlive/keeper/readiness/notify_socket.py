"""The socket through which a server tells that it is ready (`NOTIFY_SOCKET`)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from outlive.bundle.attempt import AttemptFiles


class NotifySocket:
    """A datagram socket with the protocol of systemd's `sd_notify`."""

    def __init__(self, files: AttemptFiles) -> None:
        """Open the socket in the directory of an attempt.

        A path of more than 107 bytes does not fit into the address of a socket. Then the socket has an abstract name.
        """
        raise NotImplementedError

    @property
    def variable(self) -> dict[str, str]:
        """The environment variable for the command."""
        raise NotImplementedError

    @property
    def fd(self) -> int:
        """The descriptor, which is readable when a message waits."""
        raise NotImplementedError

    def has_told(self, is_ours: Callable[[int], bool]) -> bool:
        """Read all messages. Return whether one of the task's processes is ready.

        `is_ours` returns whether a pid is a process of the task. Messages of other processes are dropped.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Close the socket, and remove its path."""
        raise NotImplementedError

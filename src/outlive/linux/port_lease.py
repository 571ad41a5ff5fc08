"""Leases of ports: bound sockets, so that no other program is given the port.

A leased port is bound on 127.0.0.1 and ::1 with SO_REUSEADDR, and nothing listens on it. A server that sets
SO_REUSEADDR, too, can still bind the port and listen on it. Almost every server does this. A program that searches for
a free port gets EADDRINUSE.

SO_REUSEADDR lets several leases bind the same port. So each lease also binds an abstract name, which only one socket of
the network namespace can have. The kernel frees the name and the port when the last process closes the sockets.
"""

from __future__ import annotations

import socket
from errno import EADDRINUSE

from outlive.linux.listeners import listening_ports
from outlive.linux.syscalls import read_small

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_LOOPBACK = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))


def lease_one_of(numbers: Iterable[int]) -> tuple[int, tuple[int, ...]] | None:
    """Lease the first free port. Return its number and the descriptors that hold it.

    Returns None if none of the ports is free. The port is free again when every copy of the descriptors is closed.
    """
    taken = listening_ports()
    for number in numbers:
        if number not in taken and (held := _lease(number)) is not None:
            return number, tuple(each.detach() for each in held)
    return None


def ephemeral_ports() -> tuple[int, int]:
    """Return the lowest and the highest port that the kernel chooses itself.

    The kernel chooses a port for clients, and for servers with port 0.
    """
    try:
        low, high = read_small("/proc/sys/net/ipv4/ip_local_port_range").split()
        return int(low), int(high)
    except (OSError, ValueError):
        return 32768, 60999  # the default of Linux


def _lease(number: int) -> list[socket.socket] | None:
    """Return the sockets of a lease, or None if the port is not free."""
    held: list[socket.socket] = []
    try:
        held.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC))
        held[0].bind(f"\0outlive-port-{number}")
        for family, address in _LOOPBACK:
            bound = _bind(family, address, number)
            if bound is not None:
                held.append(bound)
    except OSError as error:
        for each in held:
            each.close()
        if error.errno == EADDRINUSE:
            return None
        raise
    return held


def _bind(family: int, address: str, number: int) -> socket.socket | None:
    """Return a socket that is bound to an address.

    Returns None if the system has no such address, for example without IPv6. Raises OSError with EADDRINUSE if another
    socket has the port.
    """
    try:
        bound = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    except OSError:
        return None
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((address, number))
    except OSError as error:
        bound.close()
        if error.errno == EADDRINUSE:
            raise
        return None
    return bound

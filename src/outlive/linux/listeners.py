"""Sockets that wait for connections, and the processes that have them open.

The kernel lists the sockets of one network namespace in /proc/net/tcp and /proc/net/tcp6. A socket has an inode number,
and /proc/PID/fd shows which processes have this inode open. A socket may have several owners, because a child process
inherits the descriptors of its parent.
"""

from __future__ import annotations

import os
import sys
from _socket import AF_INET, AF_INET6, inet_ntop  # hooks load this module, and importing `socket` is slow

from outlive.domain.value import Value
from outlive.linux.syscalls import read_proc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_LISTEN = b"0A"
_LINK = "socket:["


class Listener(Value):
    """A TCP socket that waits for connections."""

    port: int
    address: str
    """The address without the port, such as `127.0.0.1` or `::`."""
    inode: int
    user: int
    """The uid of the process that made the socket."""
    pids: tuple[int, ...] = ()
    """The processes that have the socket open. Empty if this process may not see the owners."""

    @property
    def endpoint(self) -> str:
        """The address and the port as one text, such as `[::1]:5173`."""
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


def all_listeners() -> list[Listener]:
    """Return every listener of this network namespace, sorted by port."""
    found = list(_listening("self"))
    return _sorted(_with_owners(found, _owners(_all_pids()))) if found else []


def listeners_on(port: int) -> list[Listener]:
    """Return the listeners on a port in this network namespace."""
    found = [each for each in _listening("self") if each.port == port]
    return _sorted(_with_owners(found, _owners(_all_pids()))) if found else []


def listeners_of(pids: Iterable[int]) -> list[Listener]:
    """Return the listeners that the given processes have open, sorted by port.

    The processes may be in several network namespaces.
    """
    by_namespace: dict[str, list[int]] = {}
    for pid in pids:
        by_namespace.setdefault(_network_of(pid), []).append(pid)
    found: list[Listener] = []
    for inside in by_namespace.values():
        owners = _owners(inside)
        if owners:
            one_of_them = next(iter(owners.values()))[0]
            found += _with_owners(_listening(str(one_of_them)), owners)
    return _sorted(each for each in found if each.pids)


def sockets_on(port: int) -> set[int]:
    """Return the inodes of the sockets that listen on a port, without their owners.

    This is much faster than finding the owners.
    """
    return {each.inode for each in _listening("self") if each.port == port}


def listening_ports() -> set[int]:
    """Return all ports of this network namespace on which a process listens."""
    return {each.port for each in _listening("self")}


def _with_owners(found: Iterable[Listener], owners: Mapping[int, list[int]]) -> list[Listener]:
    return [each.but(pids=tuple(sorted(owners.get(each.inode, ())))) for each in found]


def _sorted(found: Iterable[Listener]) -> list[Listener]:
    return sorted(found, key=lambda each: (each.port, each.address, each.inode))


def _owners(pids: Iterable[int]) -> dict[int, list[int]]:
    """Return the inodes of the sockets that processes have open, with their pids.

    A process that has ended, or that this process may not inspect, is left out.
    """
    found: dict[int, list[int]] = {}
    for pid in pids:
        for inode in set(_sockets_of(pid)):
            found.setdefault(inode, []).append(pid)
    return found


def _sockets_of(pid: int) -> Iterator[int]:
    try:
        fds = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return
    for fd in fds:
        try:
            link = os.readlink(f"/proc/{pid}/fd/{fd}")
        except OSError:
            continue
        if link.startswith(_LINK):
            yield int(link[len(_LINK) : -1])


def _listening(whose: str) -> Iterator[Listener]:
    """Yield the listeners of a process's network namespace, without their owners."""
    for name, family in (("tcp", AF_INET), ("tcp6", AF_INET6)):
        try:
            lines = read_proc(f"/proc/{whose}/net/{name}").splitlines()[1:]
        except OSError:
            continue  # the kernel has no IPv6, or the process has ended
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTEN:
                address, _, port = fields[1].decode("ascii").partition(":")
                yield Listener(
                    port=int(port, 16),
                    address=_address(address, family),
                    inode=int(fields[9]),
                    user=int(fields[7]),
                )


def _address(text: str, family: int) -> str:
    """Return an address as people write it.

    The kernel prints an address as one or four numbers of 32 bits, in the byte order of the machine.
    """
    parts = (int(text[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(text), 8))
    return inet_ntop(family, b"".join(parts))


def _network_of(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return ""


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]

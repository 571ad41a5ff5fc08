"""The file of an attempt's leased ports: their names and numbers.

The file is in the bundle and not in the ledger, because no query needs the numbers.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.attempt import AttemptFiles

_LARGEST = 4096


def write_ports(files: AttemptFiles, ports: dict[str, int]) -> None:
    """Write the names and numbers of the ports that an attempt has leased."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(files.ports, flags, 0o600)
    try:
        os.write(fd, "".join(f"{name} {number}\n" for name, number in ports.items()).encode("ascii"))
    finally:
        os.close(fd)


def read_ports(files: AttemptFiles) -> dict[str, int]:
    """Return the ports that an attempt has leased, the first one first.

    Returns an empty dictionary if the attempt has no leased port.
    """
    try:
        fd = os.open(files.ports, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return {}
    try:
        lines = os.read(fd, _LARGEST).decode("ascii", "replace").splitlines()
    finally:
        os.close(fd)
    pairs = [line.split() for line in lines]
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}

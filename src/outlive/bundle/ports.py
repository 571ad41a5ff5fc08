"""The leased ports of an attempt: their file, and the lease.

The file has the names and numbers of the ports. It is in the bundle and not in the ledger, because no query needs the
numbers. The keeper and the witness hold the lease: they have the sockets open, and the command does not inherit them.
"""

from __future__ import annotations

import os

from outlive.domain.errors import Unavailable, hint_after
from outlive.domain.tasks.ports import candidates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from outlive.bundle.attempt import AttemptFiles, HeldFiles

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


def lease_ports(
    files: AttemptFiles,
    held: HeldFiles,
    names: Sequence[str],
    project: str,
    preferred: Mapping[str, int] | None = None,
) -> None:
    """Lease a free port for each name, and write the file.

    The sockets are added to `held`. `preferred` are the ports of an earlier attempt, which are leased again if they are
    free. If no port is free, all files of `held` are closed, and `Unavailable` is raised.
    """
    if not names:
        return
    from outlive.linux.port_lease import ephemeral_ports, lease_one_of  # noqa: PLC0415 - importing `socket` is slow, and only tasks with ports need it

    found: dict[str, int] = {}
    before, ephemeral = preferred or {}, ephemeral_ports()
    try:
        for name in names:
            wanted = [before[name]] if name in before else []
            leased = lease_one_of((*wanted, *candidates(project, name, ephemeral)))
            if leased is None:
                raise Unavailable(
                    f"no port is free for {name}", "`outlive ports --all` shows who listens on which port"
                )
            found[name] = leased[0]
            held.ports += leased[1]
        write_ports(files, found)
    except OSError as error:
        held.close()
        raise Unavailable(
            f"no port can be leased: {error.strerror}", hint_after(error, "nothing was started")
        ) from error
    except Unavailable:
        held.close()
        raise


def keep_ports(before: AttemptFiles, held: HeldFiles, after: AttemptFiles, following: HeldFiles) -> None:
    """Give the ports of an attempt to the next attempt, which the same keeper starts."""
    if held.ports:
        following.ports = tuple(map(os.dup, held.ports))
        write_ports(after, read_ports(before))

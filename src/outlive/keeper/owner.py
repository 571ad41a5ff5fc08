"""The owner of a foreground task: the process whose end is the task's end.

It is known by a pidfd as long as the keeper lives, and by its identity on record for a keeper
that adopts the task later.
"""

from __future__ import annotations

from outlive.bundle import record
from outlive.bundle.processes import Identity, identify, open_verified


def remember(record_fd: int, pidfd: int) -> None:
    """Write down who the owner is; nothing if it is gone already, which the pidfd will tell."""
    try:
        with open(f"/proc/self/fdinfo/{pidfd}", encoding="ascii") as file:
            pid = next(int(line.split()[1]) for line in file if line.startswith("Pid:"))
        owner = identify(pid)
    except (OSError, StopIteration):
        return
    record.write_slot(record_fd, "owner", durable=False, **owner.__dict__)


def find(record_fd: int) -> tuple[int | None, bool]:
    """A pidfd of the owner on record while it lives, and whether the task has lost its owner."""
    slot = record.read_slot(record_fd, "owner")
    if slot is None:
        return None, False
    pidfd = open_verified(
        Identity(
            pid=int(slot["pid"]),
            inode=int(slot["inode"]),
            start=int(slot["start"]),
            boot=slot["boot"],
            namespace=int(slot["namespace"]),
        )
    )
    return pidfd, pidfd is None

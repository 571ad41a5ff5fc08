"""The owner of a foreground task: the process whose end also ends the task.

The first keeper has a pidfd of the owner. A keeper that takes over the task from a dead keeper reads the owner's pid
and start time from the exit record.
"""

from __future__ import annotations

from outlive.bundle import record
from outlive.linux.processes import Identity, identify, open_verified


def remember(record_fd: int, pidfd: int) -> None:
    """Record the owner's pid and start time for a keeper that takes over the task.

    Does nothing if the owner has ended, because the pidfd already shows the end.
    """
    try:
        with open(f"/proc/self/fdinfo/{pidfd}", encoding="ascii") as file:
            pid = next(int(line.split()[1]) for line in file if line.startswith("Pid:"))
        owner = identify(pid)
    except (OSError, StopIteration):
        return
    record.write_slot(record_fd, "owner", durable=False, **owner.__dict__)


def find(record_fd: int) -> tuple[int | None, bool]:
    """Return a pidfd of the recorded owner, and whether the owner has ended.

    The pidfd is None if no owner is recorded, or if the owner has ended.
    """
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

"""The attempt's record: five small facts in one preallocated file.

Each fact has a slot of its own disk sector and is overwritten in place: no allocation, so it can
be written on a full disk; a checksum, so that a torn write reads as "nothing" and never as a
wrong number. The exit slot is the one that decides how a task ended when nobody is left to ask.
"""

from __future__ import annotations

import os
from zlib import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Slot = Literal["exit", "intent", "process", "hole", "owner"]

_SECTOR = 512
_OFFSETS: dict[str, int] = {"exit": 0, "intent": 512, "process": 1024, "hole": 1536, "owner": 2048}
_EXIT_SIZE = 64
SIZE = _SECTOR * len(_OFFSETS)
SLOTS: tuple[Slot, ...] = ("exit", "intent", "process", "hole", "owner")


def preallocate(path: str) -> int:
    """Create the record with real blocks behind it; returns its descriptor."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        # Zeros written and synced, not fallocate(): on some file systems an unwritten extent
        # still has to be allocated when it is first filled.
        os.pwrite(fd, bytes(SIZE), 0)
        os.fsync(fd)
    except OSError:
        os.close(fd)
        raise
    return fd


def open_record(path: str, *, write: bool = False) -> int:
    """A descriptor of an existing record."""
    return os.open(path, (os.O_RDWR if write else os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC)


def write_slot(fd: int, slot: Slot, *, durable: bool = True, **fields: object) -> None:
    """Put a fact into its slot: one write, then one sync if it must survive a power cut."""
    line = " ".join(f"{name}={value}" for name, value in fields.items()).encode("ascii")
    size = _EXIT_SIZE if slot == "exit" else _SECTOR
    text = line + b" crc=%08x\n" % crc32(line)
    if len(text) > size:
        raise ValueError(f"{slot} record is {len(text)} bytes, its slot has {size}")
    os.pwrite(fd, text.ljust(size, b"\0"), _OFFSETS[slot])
    if durable:
        os.fdatasync(fd)


def clear_slot(fd: int, slot: Slot) -> None:
    """Take a fact back."""
    os.pwrite(fd, bytes(_EXIT_SIZE if slot == "exit" else _SECTOR), _OFFSETS[slot])
    os.fdatasync(fd)


def read_slot(fd: int, slot: Slot) -> dict[str, str] | None:
    """The fact in a slot, or None if it was never (wholly) written."""
    raw = os.pread(fd, _SECTOR, _OFFSETS[slot]).rstrip(b"\0")
    line, mark, checksum = raw.partition(b" crc=")
    if not mark or checksum != b"%08x\n" % crc32(line):
        return None
    return dict(pair.split("=", 1) for pair in line.decode("ascii").split(" "))


def is_damaged(path: str, slot: Slot) -> bool:
    """Whether something is in a slot that cannot be read."""
    fd = open_record(path)
    try:
        return bool(os.pread(fd, _SECTOR, _OFFSETS[slot]).strip(b"\0")) and read_slot(fd, slot) is None
    finally:
        os.close(fd)

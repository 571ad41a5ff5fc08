"""The record of an attempt: five small facts in one preallocated file.

Each fact has its own disk sector, called its slot, and is overwritten in place. So a fact can be written on a full
disk. Each fact has a checksum, so that a partly written fact counts as missing. If the keeper and the witness are both
dead, the exit slot decides how the task ended.
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
    """Create an attempt's record file with allocated disk blocks.

    Returns its descriptor.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        # Zeros are written and synced, because fallocate() is not enough. On some file systems, the first write into
        # an unwritten extent needs an allocation, which fails on a full disk.
        os.pwrite(fd, bytes(SIZE), 0)
        os.fsync(fd)
    except OSError:
        os.close(fd)
        raise
    return fd


def open_record(path: str, *, write: bool = False) -> int:
    """Open an existing record file of an attempt and return its descriptor."""
    return os.open(path, (os.O_RDWR if write else os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC)


def text_of_slot(slot: Slot, **fields: object) -> bytes:
    """Return a fact as bytes, padded to the size of its place in the record file.

    Raises ValueError if the fact is too long for this place.
    """
    line = " ".join(f"{name}={value}" for name, value in fields.items()).encode("ascii")
    size = _EXIT_SIZE if slot == "exit" else _SECTOR
    text = line + b" crc=%08x\n" % crc32(line)
    if len(text) > size:
        raise ValueError(f"the {slot} fact has {len(text)} bytes, but its slot has only {size}")
    return text.ljust(size, b"\0")


def write_slot(fd: int, slot: Slot, *, durable: bool = True, **fields: object) -> None:
    """Write a fact to its place in the record file.

    `slot` names the place. `durable` means that the file is synced afterwards.
    """
    os.pwrite(fd, text_of_slot(slot, **fields), _OFFSETS[slot])
    if durable:
        os.fdatasync(fd)


def clear_slot(fd: int, slot: Slot) -> None:
    """Delete a fact from the record file. `slot` is the name of the fact."""
    os.pwrite(fd, bytes(_EXIT_SIZE if slot == "exit" else _SECTOR), _OFFSETS[slot])
    os.fdatasync(fd)


def read_slot(fd: int, slot: Slot) -> dict[str, str] | None:
    """Return a fact from the record file, or None if there is no complete fact.

    `slot` is the name of the fact.
    """
    raw = os.pread(fd, _SECTOR, _OFFSETS[slot]).rstrip(b"\0")
    line, mark, checksum = raw.partition(b" crc=")
    if not mark or checksum != b"%08x\n" % crc32(line):
        return None
    return dict(pair.split("=", 1) for pair in line.decode("ascii").split(" "))


def is_damaged(path: str, slot: Slot) -> bool:
    """Return whether a fact in the record file is damaged.

    A damaged fact has content, but is not complete. `slot` is the name of the fact.
    """
    fd = open_record(path)
    try:
        return bool(os.pread(fd, _SECTOR, _OFFSETS[slot]).strip(b"\0")) and read_slot(fd, slot) is None
    finally:
        os.close(fd)

"""The record of an attempt: each fact in it is read as it was written, or not at all."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

import pytest

from outlive.bundle import record
from outlive.bundle.attempt import AttemptFiles

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from outlive.bundle.record import Slot

SLOTS: tuple[Slot, ...] = ("exit", "intent", "process", "hole")
FACTS: dict[Slot, dict[str, object]] = {
    "exit": {"code": 137, "at": 1_782_050_282_113_000},
    "intent": {"kind": "cancel", "at": 1_782_050_282_113_000},
    "process": {"pid": 4194303, "inode": 1 << 40, "start": 99, "boot": "b-1", "namespace": 4026},
    "hole": {"start": 8192, "end": 1 << 40},
}


def as_read(fields: dict[str, object]) -> dict[str, str]:
    """Return the fields with their values converted to text, as a reader gets them."""
    return {name: str(value) for name, value in fields.items()}


def write(fd: int, slot: Slot, **fields: Any) -> None:
    """Write one fact into its place in the record, without waiting for the disk."""
    record.write_slot(fd, slot, durable=False, **fields)


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    """Open a new record."""
    descriptor = record.preallocate(str(tmp_path / "record"))
    yield descriptor
    os.close(descriptor)


def test_new_record_has_no_facts(fd: int, tmp_path: Path) -> None:
    """A new record is private, has its space on the disk, and contains no facts. It cannot be created twice."""
    assert [record.read_slot(fd, slot) for slot in SLOTS] == [None] * 4
    found = os.fstat(fd)
    assert found.st_size == record.SIZE
    assert found.st_blocks * 512 >= record.SIZE
    assert stat.S_IMODE(found.st_mode) == 0o600
    with pytest.raises(FileExistsError):
        record.preallocate(str(tmp_path / "record"))


@pytest.mark.parametrize("slot", SLOTS)
def test_a_fact_is_read_as_it_was_written(fd: int, slot: Slot) -> None:
    """Each fact is read as it was last written."""
    short: dict[str, object] = {"a": 1}
    for fields in (FACTS[slot], short, FACTS[slot]):
        write(fd, slot, **fields)
        assert record.read_slot(fd, slot) == as_read(fields)


def test_slots_do_not_overlap(fd: int) -> None:
    """A fact stays the same when another one is written, cleared or filled to its last byte."""
    for slot in SLOTS:
        write(fd, slot, **FACTS[slot])
    assert {slot: record.read_slot(fd, slot) for slot in SLOTS} == {slot: as_read(FACTS[slot]) for slot in SLOTS}
    for slot in SLOTS:
        room = (64 if slot == "exit" else 512) - len(" crc=12345678\n") - len("x=")
        write(fd, slot, x="y" * room)
        assert record.read_slot(fd, slot) == {"x": "y" * room}
        with pytest.raises(ValueError, match="its slot has"):
            write(fd, slot, x="y" * (room + 1))
        for other in set(SLOTS) - {slot}:
            assert record.read_slot(fd, other) == as_read(FACTS[other])
        record.clear_slot(fd, slot)
        assert record.read_slot(fd, slot) is None
        write(fd, slot, **FACTS[slot])
    assert os.fstat(fd).st_size == record.SIZE


def test_the_exit_record_is_64_bytes_at_the_beginning(fd: int) -> None:
    """The exit record is 64 bytes long and at offset 0, where the witness writes it with a single call."""
    before = os.pread(fd, record.SIZE, 0)
    write(fd, "exit", **FACTS["exit"])
    after = os.pread(fd, record.SIZE, 0)
    assert before[64:] == after[64:]
    assert after[:64].rstrip(b"\0").startswith(b"code=137 at=1782050282113000 crc=")
    assert after[:64].rstrip(b"\0").endswith(b"\n")


@pytest.mark.parametrize("slot", SLOTS)
def test_write_slot_raises_when_a_fact_does_not_fit(fd: int, slot: Slot) -> None:
    """A fact that is too long for its place raises an error, and nothing is written."""
    with pytest.raises(ValueError, match=f"the {slot} fact has"):
        write(fd, slot, x="y" * 512)
    assert os.pread(fd, record.SIZE, 0) == bytes(record.SIZE)


@pytest.mark.parametrize("slot", SLOTS)
@pytest.mark.parametrize("old", [{}, {"code": 1, "at": 5}], ids=["fresh", "overwritten"])
def test_torn_write_gives_the_old_fact_the_new_one_or_none(fd: int, slot: Slot, old: dict[str, object]) -> None:
    """If a write is interrupted at any byte, a reader gets the old fact, the new one or None."""
    size = 64 if slot == "exit" else 512
    offset = 512 * SLOTS.index(slot)
    if old:
        write(fd, slot, **old)
    before = os.pread(fd, size, offset)
    write(fd, slot, **FACTS[slot])
    whole = os.pread(fd, size, offset)
    possible = ([as_read(old)] if old else []) + [None, as_read(FACTS[slot])]
    length = len(whole.rstrip(b"\0"))
    for cut in range(length):
        os.pwrite(fd, whole[:cut] + before[cut:], offset)
        found = record.read_slot(fd, slot)
        assert found in possible[:-1]
        assert found is None or cut <= len(before.rstrip(b"\0")), "an incomplete fact was read"
    os.pwrite(fd, whole, offset)
    assert record.read_slot(fd, slot) == as_read(FACTS[slot])


@pytest.mark.parametrize("slot", SLOTS)
def test_slot_with_a_changed_byte_is_read_as_none(fd: int, slot: Slot) -> None:
    """If any byte of a fact is changed on the disk, the fact is read as None."""
    offset = 512 * SLOTS.index(slot)
    write(fd, slot, **FACTS[slot])
    whole = os.pread(fd, 512, offset)
    for at in range(len(whole.rstrip(b"\0")) + 3):
        for mask in (0x01, 0x20, 0x80, 0xFF, whole[at]):
            if mask:
                os.pwrite(fd, bytes([whole[at] ^ mask]), offset + at)
                assert record.read_slot(fd, slot) is None, (at, mask)
        os.pwrite(fd, whole[at : at + 1], offset + at)
    assert record.read_slot(fd, slot) == as_read(FACTS[slot])


@pytest.mark.parametrize("size", [0, 10, 40, 64, 512, 1500])
def test_cut_record_has_only_the_facts_that_are_complete(fd: int, size: int) -> None:
    """If the record lost its end, the facts before this are still read."""
    for slot in SLOTS:
        write(fd, slot, **FACTS[slot])
    os.ftruncate(fd, size)
    for slot in SLOTS:
        offset = 512 * SLOTS.index(slot)
        length = len(record_text(slot))
        expected = as_read(FACTS[slot]) if offset + length <= size else None
        assert record.read_slot(fd, slot) == expected


def record_text(slot: Slot) -> bytes:
    """Return the bytes of a fact without the bytes that fill its place."""
    line = " ".join(f"{name}={value}" for name, value in FACTS[slot].items())
    return line.encode() + b" crc=12345678\n"


def test_record_is_not_opened_through_a_symbolic_link(tmp_path: Path) -> None:
    """A symbolic link in the place of a record is refused, when it is created and when it is read."""
    (tmp_path / "target").write_bytes(bytes(record.SIZE))
    (tmp_path / "record").symlink_to(tmp_path / "target")
    with pytest.raises(FileExistsError):
        record.preallocate(str(tmp_path / "record"))
    with pytest.raises(OSError, match="symbolic links"):
        record.open_record(str(tmp_path / "record"))


def test_missing_record_has_no_facts(tmp_path: Path) -> None:
    """If an attempt has no files, its facts are None, and no error is raised."""
    assert AttemptFiles(str(tmp_path), 1).read_slot("exit") is None

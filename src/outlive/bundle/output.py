"""The output of an attempt: stored once, straight from the command; capped by a hole.

Byte offsets are positions in the file and stay valid for ever. When the file outgrows its cap, a
hole in the middle gives the blocks back: first the hole is recorded, then it is punched, so that
a reader never takes zeros for output.
"""

from __future__ import annotations

import os

from outlive.bundle import record
from outlive.bundle.kernel import punch_hole
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.attempt import AttemptFiles

_BLOCK = 4096
SMALLEST_CAP = 16 * _BLOCK


class Piece(Value):
    """A stretch of output: where it starts, what it says, how many bytes before it are gone."""

    start: int
    content: bytes
    dropped_before: int = 0
    restarted: bool = False
    """Everything before is gone: the command truncated its output."""

    @property
    def end(self) -> int:
        """The offset after its last byte."""
        return self.start + len(self.content)


class Hole(Value):
    """The span of the output that was given up for the cap."""

    start: int = 0
    end: int = 0


def head_of(cap: int) -> int:
    """How much of the beginning a cap keeps: an eighth, at most a megabyte, whole blocks."""
    return max(_BLOCK, min(cap // 8, 1 << 20) // _BLOCK * _BLOCK)


def enforce_cap(output: int, record_fd: int, cap: int, hole: Hole) -> Hole:
    """Widen the hole so that at most `cap` bytes stay on disk; returns the hole as it is now."""
    size = os.fstat(output).st_size
    head = head_of(cap)
    end = -(-(size - (cap - head)) // _BLOCK) * _BLOCK
    start = hole.end or head
    if end <= start:
        return hole
    wider = Hole(start=head, end=end)
    record.write_slot(record_fd, "hole", start=wider.start, end=wider.end)
    punch_hole(output, start, end - start)
    return wider


def read_hole(files: AttemptFiles) -> Hole:
    """The recorded hole; an empty one if there is none."""
    found = files.read_slot("hole")
    return Hole(start=int(found["start"]), end=int(found["end"])) if found else Hole()


def read_piece(files: AttemptFiles, start: int, limit: int) -> Piece:
    """At most `limit` bytes from `start` on, never across the hole and never from inside it."""
    try:
        fd = os.open(files.output, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return Piece(start=start, content=b"")
    try:
        content = os.pread(fd, limit, start)
    finally:
        os.close(fd)
    # The hole is read after the bytes: if it grew over them meanwhile, they are zeros by now.
    hole = read_hole(files)
    if hole.start <= start < hole.end:
        after = read_piece(files, hole.end, limit)
        return after.but(dropped_before=after.dropped_before + hole.end - start)
    if start < hole.start < start + len(content):
        content = content[: hole.start - start]
    return Piece(start=start, content=content)


def read_tail(files: AttemptFiles, limit: int) -> Piece:
    """The last bytes of the output."""
    return read_piece(files, max(0, size_of(files) - limit), limit)


def size_of(files: AttemptFiles) -> int:
    """How many bytes the command has written, the dropped ones included."""
    try:
        return os.stat(files.output).st_size
    except FileNotFoundError:
        return 0

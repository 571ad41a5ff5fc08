"""The output of an attempt: one file of limited size, which the command writes.

When the file takes more space than its cap, a hole is punched: blocks in the middle are freed, and no byte offset
changes. The hole is recorded before it is punched, so that no reader takes the zeros in the hole for output.
"""

from __future__ import annotations

import os
from errno import EAGAIN
from fcntl import F_RDLCK, F_SETLEASE, F_UNLCK, fcntl

from outlive.bundle import record
from outlive.domain.value import Value
from outlive.linux.syscalls import punch_hole, signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.attempt import AttemptFiles

_BLOCK = 4096
_F_SETSIG = 10  # the number on Linux; `fcntl` has no name for it
SMALLEST_CAP = 16 * _BLOCK


class Piece(Value):
    """A span of output: its offset, its bytes, and the number of lost bytes before it."""

    start: int
    content: bytes
    dropped_before: int = 0
    restarted: bool = False
    """Whether the command has truncated the file. Then the earlier output is lost."""

    @property
    def end(self) -> int:
        """The offset after the last byte."""
        return self.start + len(self.content)


class Hole(Value):
    """The span of the output that was deleted to keep the file below its size limit."""

    start: int = 0
    end: int = 0


def head_of(cap: int) -> int:
    """Return how much of the output's beginning to keep.

    This is an eighth of `cap`, the largest size of the output.
    """
    return max(_BLOCK, min(cap // 8, 1 << 20) // _BLOCK * _BLOCK)


def enforce_cap(output: int, record_fd: int, cap: int, hole: Hole) -> Hole:
    """Delete the middle of the output so that at most `cap` bytes stay on disk.

    `hole` is the span that was deleted before. Returns the new deleted span.
    """
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
    """Return which span of the output was deleted, as the attempt's record says.

    If nothing was deleted, the span is empty.
    """
    found = files.read_slot("hole")
    return Hole(start=int(found["start"]), end=int(found["end"])) if found else Hole()


def read_piece(files: AttemptFiles, start: int, limit: int) -> Piece:
    """Return at most `limit` bytes of the output, from the offset `start` on.

    The middle of a long output may be deleted. The result ends where the deleted part begins. If `start` is inside the
    deleted part, the result begins after it.
    """
    try:
        fd = os.open(files.output, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return Piece(start=start, content=b"")
    try:
        content = os.pread(fd, limit, start)
    finally:
        os.close(fd)
    # Read the deleted span after the bytes. If it was widened meanwhile, some of the bytes may be its zeros.
    hole = read_hole(files)
    if hole.start <= start < hole.end:
        after = read_piece(files, hole.end, limit)
        return after.but(dropped_before=after.dropped_before + hole.end - start)
    if start < hole.start < start + len(content):
        content = content[: hole.start - start]
    return Piece(start=start, content=content)


def read_tail(files: AttemptFiles, limit: int) -> Piece:
    """Return the last bytes of the output, at most `limit`."""
    return read_piece(files, max(0, size_of(files) - limit), limit)


def size_of(files: AttemptFiles) -> int:
    """Return how many bytes the command has written, including the deleted bytes."""
    try:
        return os.stat(files.output).st_size
    except FileNotFoundError:
        return 0


def has_writers(path: str) -> bool:
    """Return whether a process has a file open for writing.

    Returns False if this is not known. The kernel refuses a read lease on a file that is open for writing, even if the
    writing process is in another PID namespace.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # If another process opens the file while this process has the read lease, the kernel sends this process a
        # signal. The default signal, SIGIO, would end this process. So the signal is set to SIGURG, which a process
        # ignores by default.
        fcntl(fd, _F_SETSIG, signal.SIGURG)
        fcntl(fd, F_SETLEASE, F_RDLCK)
        fcntl(fd, F_SETLEASE, F_UNLCK)
    except OSError as error:
        return error.errno == EAGAIN
    finally:
        os.close(fd)
    return False

"""Reading an output: every byte is read once and at its offset, or is counted as dropped."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from outlive.bundle import record
from outlive.bundle.attempt import AttemptFiles
from outlive.bundle.output import (
    SMALLEST_CAP,
    Hole,
    Piece,
    enforce_cap,
    head_of,
    read_hole,
    read_piece,
    read_tail,
    size_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BLOCK = 4096
# The output contains no zero byte. A zero that is read comes from a part that was removed.
WRITTEN = bytes(random.Random(3).choices(range(1, 256), k=80 * BLOCK))


class Attempt:
    """An attempt's output and record, written as by a command and its keeper."""

    def __init__(self, path: Path) -> None:
        self.files = AttemptFiles(str(path), 1)
        os.makedirs(self.files.path)
        self._output = os.open(self.files.output, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._record = record.preallocate(self.files.record)
        self.size = 0
        self.hole = Hole()

    def write(self, count: int) -> None:
        """Append bytes to the output, as the command does."""
        os.write(self._output, WRITTEN[self.size : self.size + count])
        self.size = os.fstat(self._output).st_size

    def cap(self, cap: int) -> None:
        """Apply the cap to the output, as the keeper does."""
        self.hole = enforce_cap(self._output, self._record, cap, self.hole)

    def on_disk(self) -> int:
        """Return the number of bytes that the output occupies on the disk."""
        return os.fstat(self._output).st_blocks * 512

    def clear(self) -> None:
        """Start again with nothing written."""
        os.ftruncate(self._output, 0)
        record.clear_slot(self._record, "hole")
        self.size, self.hole = 0, Hole()

    def close(self) -> None:
        """Close the output and the record."""
        os.close(self._output)
        os.close(self._record)


@pytest.fixture
def attempt(tmp_path: Path) -> Iterator[Attempt]:
    """Make an attempt that has written nothing."""
    made = Attempt(tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="module")
def reused(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attempt]:
    """Make an attempt that is cleared before each example."""
    made = Attempt(tmp_path_factory.mktemp("output"))
    yield made
    made.close()


# --- applying the cap -----------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.integers(SMALLEST_CAP, 1 << 45))
def test_head_is_an_eighth_of_the_cap_in_whole_blocks(cap: int) -> None:
    """The kept beginning of an output is an eighth of the cap, in whole blocks: at least one, at most a megabyte."""
    head = head_of(cap)
    assert head % BLOCK == 0
    assert BLOCK <= head <= 1 << 20
    assert head <= cap // 8
    assert head > cap // 8 - BLOCK or head == 1 << 20


def test_an_output_below_its_cap_is_whole(attempt: Attempt) -> None:
    """Nothing is removed from an output below its cap."""
    attempt.write(SMALLEST_CAP)
    attempt.cap(SMALLEST_CAP)
    assert attempt.hole == read_hole(attempt.files) == Hole()
    assert read_piece(attempt.files, 0, 1 << 20).content == WRITTEN[:SMALLEST_CAP]


def test_an_output_above_its_cap_keeps_head_and_tail(attempt: Attempt) -> None:
    """Above its cap, an output keeps its beginning and its end. The blocks between them are recorded and freed."""
    attempt.write(40 * BLOCK + 5)
    attempt.cap(SMALLEST_CAP)
    hole = attempt.hole
    assert hole == read_hole(attempt.files)
    assert hole.start == head_of(SMALLEST_CAP)
    assert hole.end % BLOCK == 0
    kept = hole.start + attempt.size - hole.end
    assert SMALLEST_CAP - BLOCK < kept <= SMALLEST_CAP
    assert attempt.on_disk() <= SMALLEST_CAP
    assert size_of(attempt.files) == 40 * BLOCK + 5


def test_hole_of_an_output_only_grows(attempt: Attempt) -> None:
    """The removed part of an output grows only at its end. Without new output, nothing more is removed."""
    ends = []
    for _ in range(8):
        attempt.write(9 * BLOCK)
        attempt.cap(SMALLEST_CAP)
        attempt.cap(SMALLEST_CAP)
        ends.append(attempt.hole.end)
        assert attempt.hole.start in (0, head_of(SMALLEST_CAP))
        assert attempt.on_disk() <= SMALLEST_CAP + BLOCK
    assert ends == sorted(ends)
    assert ends[-1] > ends[2] > 0


# --- reading --------------------------------------------------------------------------------------


def check(attempt: Attempt, piece: Piece, asked: int, limit: int) -> None:
    """Assert that a piece of output has the right bytes, offset and number of dropped bytes."""
    assert piece.content == WRITTEN[piece.start : piece.end]
    assert len(piece.content) <= limit
    assert piece.start == asked + piece.dropped_before
    assert piece.end <= attempt.size
    hole = attempt.hole
    if piece.content:
        assert piece.end <= hole.start or piece.start >= hole.end
    if piece.dropped_before:
        assert hole.start <= asked < hole.end == piece.start


steps = st.one_of(
    st.tuples(st.just("write"), st.integers(1, 24 * BLOCK)),
    st.tuples(st.just("cap"), st.sampled_from([SMALLEST_CAP, SMALLEST_CAP + 1, 20 * BLOCK, 33 * BLOCK])),
    st.tuples(st.just("read"), st.integers(1, 12 * BLOCK)),
)


@settings(max_examples=30, deadline=None)
@example([("write", 24 * BLOCK)] * 9, 1000, 0)
@given(st.lists(steps, max_size=12), st.integers(1000, 9 * BLOCK), st.integers(0, 60 * BLOCK))
def test_reading_on_returns_each_byte_once_or_counts_it_as_dropped(
    reused: Attempt, script: list[tuple[str, int]], limit: int, somewhere: int
) -> None:
    """A reader that continues where it stopped gets each byte once, or gets it counted as dropped."""
    reused.clear()
    at, seen, dropped = 0, 0, 0
    cap = max((amount for what, amount in script if what == "cap"), default=SMALLEST_CAP)
    written = sum(amount for what, amount in script if what == "write")
    for what, amount in [*script, *[("read", limit)] * (written // limit + 20)]:
        if what == "write":
            reused.write(amount)
        elif what == "cap":
            reused.cap(cap)
        else:
            piece = read_piece(reused.files, at, amount)
            check(reused, piece, at, amount)
            seen, dropped, at = seen + len(piece.content), dropped + piece.dropped_before, piece.end
            if not piece.content and at >= reused.size:
                break
    assert at == reused.size == seen + dropped
    if somewhere < reused.size:
        check(reused, read_piece(reused.files, somewhere, limit), somewhere, limit)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 70 * BLOCK), st.booleans(), st.integers(1, 40 * BLOCK))
def test_the_tail_is_the_end_of_the_output(reused: Attempt, size: int, capped: bool, limit: int) -> None:
    """`tail` returns the last bytes of the output. Those that were removed are counted as dropped."""
    reused.clear()
    reused.write(size)
    if capped:
        reused.cap(SMALLEST_CAP)
    tail = read_tail(reused.files, limit)
    check(reused, tail, max(0, size - limit), limit)
    first = max(0, size - limit)
    if first >= reused.hole.end or size == 0:
        assert tail.content == WRITTEN[first:size]
    elif first >= reused.hole.start:
        assert tail.content == WRITTEN[reused.hole.end : size]
        assert tail.dropped_before == reused.hole.end - first


def test_reading_at_the_end_returns_nothing_until_more_is_written(attempt: Attempt) -> None:
    """A read at the end of the output returns nothing. A later read at this offset returns what was added since."""
    attempt.write(10)
    assert read_piece(attempt.files, 10, 100) == Piece(start=10, content=b"")
    attempt.write(5)
    assert read_piece(attempt.files, 10, 100) == Piece(start=10, content=WRITTEN[10:15])


def test_reads_at_the_edges_of_a_hole_are_exact(attempt: Attempt) -> None:
    """Reads at both edges of the removed part, and next to them, return the right bytes and offsets."""
    attempt.write(40 * BLOCK)
    attempt.cap(SMALLEST_CAP)
    first, after = attempt.hole.start, attempt.hole.end
    assert read_piece(attempt.files, first - 1, 9).content == WRITTEN[first - 1 : first]
    for asked in (first, first + 1, after - 1):
        piece = read_piece(attempt.files, asked, 9)
        assert (piece.start, piece.dropped_before) == (after, after - asked)
        assert piece.content == WRITTEN[after : after + 9]
    assert read_piece(attempt.files, after, 9) == Piece(start=after, content=WRITTEN[after : after + 9])


def test_a_hole_that_is_recorded_but_not_yet_punched_is_not_read(attempt: Attempt) -> None:
    """Bytes that are recorded as removed are not read, even before the keeper has removed them from the file."""
    attempt.write(30 * BLOCK)
    fd = record.open_record(attempt.files.record, write=True)
    record.write_slot(fd, "hole", start=2 * BLOCK, end=20 * BLOCK)
    os.close(fd)
    piece = read_piece(attempt.files, 2 * BLOCK, 100)
    assert (piece.start, piece.dropped_before) == (20 * BLOCK, 18 * BLOCK)
    assert read_piece(attempt.files, 0, 1 << 20).end == 2 * BLOCK


def test_an_attempt_without_output_is_empty(tmp_path: Path) -> None:
    """A missing output file is read as empty and raises no error."""
    files = AttemptFiles(str(tmp_path), 1)
    assert size_of(files) == 0
    assert read_piece(files, 7, 10) == Piece(start=7, content=b"")
    assert read_tail(files, 10) == Piece(start=0, content=b"")


def test_output_is_not_read_through_a_symbolic_link(attempt: Attempt, tmp_path: Path) -> None:
    """A symbolic link in place of the output raises an error, and its target is not read."""
    secret = tmp_path / "secret"
    secret.write_text("secret")
    os.unlink(attempt.files.output)
    os.symlink(secret, attempt.files.output)
    with pytest.raises(OSError, match="symbolic links"):
        read_piece(attempt.files, 0, 100)

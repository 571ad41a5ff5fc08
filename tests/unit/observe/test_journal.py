"""The journal is the file in which a task's changes are recorded.

Lines are read as they were written, and their times never go back.
"""

from __future__ import annotations

import os
import resource
import time
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from outlive.linux.shared_listener import SharedListener
from outlive.observe.journal import Journal, escaped, read_journal, unescaped

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

FIELDS = st.binary(max_size=40).map(os.fsdecode) | st.text("\\\t\r\nntr /", max_size=12)


@given(FIELDS)
def test_field_is_read_back_as_it_was_written(text: str) -> None:
    """A field is read back as it was written, whatever its bytes are. The written field has no separator in it."""
    assert not {"\t", "\n", "\r"} & set(escaped(text))
    assert unescaped(escaped(text)) == text


def test_journal_times_keep_their_order_when_the_clock_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the clock is set, recorded times keep their order. The wall clock is read only once, when the task begins."""
    fd = os.open(tmp_path / "journal", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    began = time.time()
    journal = Journal(fd, time.time_ns() - time.monotonic_ns())
    stamps = [journal.now()]
    for jump in (-86_400, 31_536_000):
        monkeypatch.setattr(time, "time", lambda jump=jump: began + jump)
        monkeypatch.setattr(time, "time_ns", lambda jump=jump: int((began + jump) * 1e9))
        stamps.append(journal.now())
    os.close(fd)
    assert stamps == sorted(stamps)
    assert stamps[-1] / 1e6 - began < 3600


def test_read_journal_leaves_out_torn_and_malformed_lines(tmp_path: Path) -> None:
    """Lines without a newline at the end, and lines of another form, are left out."""
    path = tmp_path / "journal"
    path.write_bytes(
        b"1\twrite\t7\t0\t/a\nnonsense\n2\twrite\tx\t0\t/b\n\xb2\twrite\t7\t0\t/c\n3\twrite\t7\t0\t/d\\n\n4\twrite\t7\t0\t/e"
    )
    assert list(read_journal(str(path))) == [["1", "write", "7", "0", "/a"], ["3", "write", "7", "0", "/d\n"]]
    assert list(read_journal(str(tmp_path / "none"))) == []


def test_journal_has_whole_lines_and_a_gap_when_the_disk_was_full(tmp_path: Path) -> None:
    """If the disk was full, the file has only whole lines, and a line that says that some are missing."""
    path = tmp_path / "journal"
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.write(fd, b"1\tbegin\t0\t-\t/top\t/top/.git\n")
    journal = Journal(fd, 0)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    written = [f"/top/{number}" for number in range(900)]
    try:
        for number, name in enumerate(written):
            journal.add(number, f"write\t7\t0\t{name}")
            if number % 7 == 0:
                full = 300 <= number < 600  # For a while, a limit of the file's size simulates a full disk.
                resource.setrlimit(resource.RLIMIT_FSIZE, (9000 + number if full else hard, hard))
                journal.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    journal.flush()
    os.close(fd)
    lines = list(read_journal(str(path)))
    names = [fields[4] for fields in lines if fields[1] == "write"]
    assert set(names) <= set(written)
    assert names == sorted(set(names), key=written.index)
    assert names[-200:] == written[-200:]
    assert "the disk was full, so changes are missing" in [fields[4] for fields in lines if fields[1] == "gap"]


def test_half_line_of_a_killed_keeper_is_not_read(tmp_path: Path) -> None:
    """A half line of a killed keeper is not read. The next line, which ends the observation, is read."""
    path = tmp_path / "journal"
    for torn in (b"2\twrite\t7\t0\t/b", b"2\twrite\t7\t0\t/tor", b""):
        path.write_bytes(b"1\twrite\t7\t0\t/a\n" + torn)
        fd = os.open(path, os.O_WRONLY | os.O_APPEND)
        SharedListener(fd, 0, keep_privileges=True).note_taking_over()
        os.close(fd)
        assert [fields[1] for fields in read_journal(str(path))] == ["write", "unobserved"]


def test_witness_records_the_time_of_the_first_observation_not_yet_written(tmp_path: Path) -> None:
    """The witness records the time of the first change that the killed keeper had seen and not written."""
    fd = os.open(tmp_path / "journal", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    eyes = SharedListener(fd, 0, keep_privileges=True)
    journal = Journal(fd, 0, eyes.note_unwritten)
    journal.add(5, "write\t7\t0\t/a")
    journal.flush()
    journal.add(7, "write\t7\t0\t/b")
    journal.add(8, "write\t7\t0\t/c")
    eyes.note_taking_over()
    os.close(fd)
    assert [fields[:2] for fields in read_journal(str(tmp_path / "journal"))] == [["5", "write"], ["7", "unobserved"]]

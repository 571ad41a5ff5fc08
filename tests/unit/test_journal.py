"""The journal: what is written is what is read, and time goes one way."""

from __future__ import annotations

import os
import resource
import time
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from outlive.bundle.eyes import Eyes
from outlive.observe.journal import Journal, escaped, read_journal, unescaped

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

FIELDS = st.binary(max_size=40).map(os.fsdecode) | st.text("\\\t\r\nntr /", max_size=12)


@given(FIELDS)
def test_a_field_is_one_field_and_comes_back(text: str) -> None:
    """Whatever bytes a path has."""
    assert not {"\t", "\n", "\r"} & set(escaped(text))
    assert unescaped(escaped(text)) == text


def test_a_clock_that_is_set_back_changes_no_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day back and a year ahead: the journal's clock was set once, when the task began."""
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


def test_a_torn_or_foreign_line_is_left_out(tmp_path: Path) -> None:
    """A line without its end may say anything; so may one that is none of ours."""
    path = tmp_path / "journal"
    path.write_bytes(
        b"1\twrite\t7\t0\t/a\nnonsense\n2\twrite\tx\t0\t/b\n\xb2\twrite\t7\t0\t/c\n3\twrite\t7\t0\t/d\\n\n4\twrite\t7\t0\t/e"
    )
    assert list(read_journal(str(path))) == [["1", "write", "7", "0", "/a"], ["3", "write", "7", "0", "/d\n"]]
    assert list(read_journal(str(tmp_path / "none"))) == []


def test_a_disk_that_is_full_again_and_again_leaves_a_gap_and_whole_lines(tmp_path: Path) -> None:
    """Wherever it was cut: every line that is there was written, and that some are missing is among them."""
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
                full = 300 <= number < 600  # for a while no file may be longer than it is now, and a little
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
    assert "the disk was full: what it did then is not known" in [fields[4] for fields in lines if fields[1] == "gap"]


def test_what_a_dying_keeper_wrote_half_is_not_taken_for_a_line(tmp_path: Path) -> None:
    """A kill tears what it writes, at the end of a page; that nobody looks from then on is told all the same."""
    path = tmp_path / "journal"
    for torn in (b"2\twrite\t7\t0\t/b", b"2\twrite\t7\t0\t/tor", b""):
        path.write_bytes(b"1\twrite\t7\t0\t/a\n" + torn)
        fd = os.open(path, os.O_WRONLY | os.O_APPEND)
        Eyes(fd, 0, keep_privileges=True).note_taking_over()
        os.close(fd)
        assert [fields[1] for fields in read_journal(str(path))] == ["write", "unobserved"]


def test_since_when_something_is_not_written_yet_is_known_to_who_takes_over(tmp_path: Path) -> None:
    """Of what was gathered and is lost with the keeper, nobody may say that it was seen."""
    fd = os.open(tmp_path / "journal", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    eyes = Eyes(fd, 0, keep_privileges=True)
    journal = Journal(fd, 0, eyes.note_unwritten)
    journal.add(5, "write\t7\t0\t/a")
    journal.flush()
    journal.add(7, "write\t7\t0\t/b")
    journal.add(8, "write\t7\t0\t/c")
    eyes.note_taking_over()
    os.close(fd)
    assert [fields[:2] for fields in read_journal(str(tmp_path / "journal"))] == [["5", "write"], ["7", "unobserved"]]

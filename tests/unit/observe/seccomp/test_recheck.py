"""Checking whether a task has restored the files that it changed."""

from __future__ import annotations

import os
import time
from itertools import count
from typing import TYPE_CHECKING

import pytest

from outlive.observe.path_state import state_like
from outlive.observe.seccomp import recheck
from outlive.observe.seccomp.recheck import Recheck

if TYPE_CHECKING:
    from pathlib import Path

NOBODY = (1 << 22) + 1
"""A thread id that no thread has."""


@pytest.fixture
def _is_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the time limits, so that a slow or busy machine changes no result."""
    for name in ("_AT_MOST_S", "_TO_ASK_ALL_S", "_AT_FIRST_S"):
        monkeypatch.setattr(recheck, name, 60.0)


@pytest.mark.usefixtures("_is_patient")
def test_recheck_waits_until_a_file_is_closed_for_writing(tmp_path: Path) -> None:
    """A file is not checked while it is open for writing. A file that is open for reading is checked."""
    path = tmp_path / "log"
    path.write_text("first\n")
    back, state = Recheck(), state_like(str(path), "")
    back.changed(str(path), state, NOBODY)
    back.changed(str(path), "0", NOBODY)
    with path.open("a"):
        assert back.look() == []
    with path.open():
        assert back.look() == [(str(path), state)]
    assert back.look() == []


@pytest.mark.usefixtures("_is_patient")
def test_recheck_finds_a_file_with_its_first_content_restored(tmp_path: Path) -> None:
    """A file counts as restored if it has its first content again. A new file never counts as restored."""
    path, new = tmp_path / "file", tmp_path / "new"
    path.write_text("first\n")
    back, state = Recheck(), state_like(str(path), "")
    back.changed(str(path), state, NOBODY)
    path.unlink()
    back.changed(str(new), "0", NOBODY)
    new.touch()
    assert back.look() == []
    back.changed(str(path), "0", NOBODY)
    path.write_text("first\n")
    assert back.look() == [(str(path), state)]


def test_recheck_takes_a_small_part_of_the_time_when_many_programs_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If one program keeps a file open and many others begin, the checks still take a small part of the time."""
    path = tmp_path / "log"
    path.write_text("first\n")
    looks, clock = count(), count()
    monkeypatch.setattr("outlive.observe.seccomp.recheck.time.monotonic", lambda: next(clock) / 1000)
    monkeypatch.setattr(recheck, "_opened_by", lambda _: (next(looks), [str(path)])[1])
    back = Recheck()
    back.changed(str(path), "f0", os.getpid())
    for _ in range(10_000):
        back.look()
    assert next(looks) < 10_000 / 4, "a quarter of the time or more was spent on checks"


def test_open_for_writing_returns_none_when_the_time_is_over(tmp_path: Path) -> None:
    """If the time limit is over, `open_for_writing` returns None, which means unknown.

    An empty set means that no process has the files open for writing.
    """
    path = str(tmp_path / "log")
    with open(path, "w"):
        assert recheck.open_for_writing([path], time.monotonic() + 60) == {path}
        assert recheck.open_for_writing([path], 0) is None
    with open(path):
        assert recheck.open_for_writing([path], time.monotonic() + 60) == set()

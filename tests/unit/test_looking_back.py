"""Unit tests of looking back at what a task has put back."""

from __future__ import annotations

import os
import time
from itertools import count
from typing import TYPE_CHECKING

import pytest

from outlive.observe import looking_back
from outlive.observe.content import state_like
from outlive.observe.looking_back import LookingBack

if TYPE_CHECKING:
    from pathlib import Path

NOBODY = (1 << 22) + 1
"""No thread has this number."""


@pytest.fixture
def _is_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, and however many processes there are to be asked."""
    for name in ("_AT_MOST_S", "_TO_ASK_ALL_S", "_AT_FIRST_S"):
        monkeypatch.setattr(looking_back, name, 60.0)


@pytest.mark.usefixtures("_is_patient")
def test_what_somebody_may_still_write_to_is_looked_at_when_it_is_closed(tmp_path: Path) -> None:
    """To read it is no matter."""
    path = tmp_path / "log"
    path.write_text("first\n")
    back, state = LookingBack(), state_like(str(path), "")
    back.changed(str(path), state, NOBODY)
    back.changed(str(path), "0", NOBODY)
    with path.open("a"):
        assert back.look() == []
    with path.open():
        assert back.look() == [(str(path), state)]
    assert back.look() == []


@pytest.mark.usefixtures("_is_patient")
def test_only_what_holds_again_what_it_held_at_first_was_put_back(tmp_path: Path) -> None:
    """Also if it was looked at while it was away; what is new was never otherwise."""
    path, new = tmp_path / "file", tmp_path / "new"
    path.write_text("first\n")
    back, state = LookingBack(), state_like(str(path), "")
    back.changed(str(path), state, NOBODY)
    path.unlink()
    back.changed(str(new), "0", NOBODY)
    new.touch()
    assert back.look() == []
    back.changed(str(path), "0", NOBODY)
    path.write_text("first\n")
    assert back.look() == [(str(path), state)]


def test_to_look_takes_a_small_part_of_the_time_however_often_it_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that has a file open for long, and very many others that begin meanwhile."""
    path = tmp_path / "log"
    path.write_text("first\n")
    looks, clock = count(), count()
    monkeypatch.setattr("outlive.observe.looking_back.time.monotonic", lambda: next(clock) / 1000)
    monkeypatch.setattr(looking_back, "_opened_by", lambda _: (next(looks), [str(path)])[1])
    back = LookingBack()
    back.changed(str(path), "f0", os.getpid())
    for _ in range(10_000):
        back.look()
    assert next(looks) < 10_000 / 4, "a program that begins takes a millisecond here, and so does a look"


def test_what_there_was_no_time_to_ask_for_is_not_known(tmp_path: Path) -> None:
    """Neither that nobody has it open, nor that all of it is."""
    path = str(tmp_path / "log")
    with open(path, "w"):
        assert looking_back.open_for_writing([path], time.monotonic() + 60) == {path}
        assert looking_back.open_for_writing([path], 0) is None
    with open(path):
        assert looking_back.open_for_writing([path], time.monotonic() + 60) == set()

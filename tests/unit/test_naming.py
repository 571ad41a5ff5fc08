"""Which file a path means: what is remembered of it, for how long, and what makes us forget."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from outlive.observe.content import ABSENT
from outlive.observe.naming import Names

if TYPE_CHECKING:
    from pathlib import Path

_BEGIN, _LATER = 1_000_000, 2_000_000


@pytest.fixture
def names() -> Names:
    """As they are when a first call is to be understood."""
    names = Names()
    names.forget(_BEGIN, is_turning=False)
    return names


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the directories `one` and `two` are; we are in `one`."""
    tmp_path = tmp_path.resolve()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "one")
    return tmp_path


def meant(names: Names, text: str, *, follows: bool = False) -> str:
    """The path that a text means to this thread."""
    return names.of(threading.get_native_id(), None, text, follows)[0]


def test_where_a_thread_is_is_asked_once_in_a_moment(names: Names, two: Path) -> None:
    """It is looked up again when the moment is over, even if nobody told that it went elsewhere."""
    assert meant(names, "a") == f"{two}/one/a"
    os.chdir(two / "two")
    assert meant(names, "a") == f"{two}/one/a"
    names.forget(_LATER, is_turning=False)
    assert meant(names, "a") == f"{two}/two/a"


def test_a_call_that_turns_paths_makes_us_forget_at_once(names: Names, two: Path) -> None:
    """And until it has surely happened nothing is remembered: it may happen after another thread's next call."""
    assert meant(names, "a") == f"{two}/one/a"
    names.forget(_BEGIN, is_turning=True)
    assert meant(names, "a") == f"{two}/one/a"
    os.chdir(two / "two")
    assert meant(names, "a") == f"{two}/two/a"
    assert names.until > _BEGIN


def test_a_link_put_where_a_directory_was_is_followed_when_the_moment_is_over(names: Names, two: Path) -> None:
    """By somebody else; of the task's own calls we would know."""
    assert meant(names, f"{two}/one/a") == f"{two}/one/a"
    (two / "one").rmdir()
    (two / "one").symlink_to("two")
    assert meant(names, f"{two}/one/a") == f"{two}/one/a"
    names.forget(_LATER, is_turning=False)
    assert meant(names, f"{two}/one/a") == f"{two}/two/a"


def test_beside_what_was_looked_up_nothing_is_looked_up(names: Names, two: Path) -> None:
    """What is there is left to whoever wants to know; but a link that is written through is followed."""
    (two / "one" / "link").symlink_to("../two/aim")
    thread = threading.get_native_id()
    assert names.of(thread, None, "a", False) == (f"{two}/one/a", ABSENT)
    assert names.of(thread, None, "link", False) == (f"{two}/one/link", None)
    assert names.of(thread, None, "link", True) == (f"{two}/two/aim", ABSENT)
    assert names.of(thread, None, "b", True) == (f"{two}/one/b", ABSENT)


@pytest.mark.parametrize(("text", "path"), [("", "one"), (".", "one"), ("..", ""), ("./", "one"), ("../two", "two")])
def test_what_is_no_name_is_looked_up_each_time(names: Names, two: Path, text: str, path: str) -> None:
    """Also where the directory is known."""
    for _ in range(2):
        assert meant(names, "a") == f"{two}/one/a"
        assert meant(names, text) == f"{two}/{path}".rstrip("/")

"""Resolving the paths of observed system calls: which results are cached, and for how long."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from outlive.observe.path_state import ABSENT
from outlive.observe.seccomp.path_resolution import PathResolver

if TYPE_CHECKING:
    from pathlib import Path

_BEGIN, _LATER = 1_000_000, 2_000_000


@pytest.fixture
def names() -> PathResolver:
    """Return an object that resolves paths and is ready for its first call."""
    names = PathResolver()
    names.forget(_BEGIN, is_turning=False)
    return names


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create the directories `one` and `two`, and change into `one`."""
    tmp_path = tmp_path.resolve()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "one")
    return tmp_path


def meant(names: PathResolver, text: str, *, follows: bool = False) -> str:
    """Return the absolute path that a text means for this thread."""
    return names.of(threading.get_native_id(), None, text, follows)[0]


def test_resolver_caches_the_working_directory_for_a_moment(names: PathResolver, two: Path) -> None:
    """The working directory is cached for a short time. Then it is read again, even if no `chdir` was observed."""
    assert meant(names, "a") == f"{two}/one/a"
    os.chdir(two / "two")
    assert meant(names, "a") == f"{two}/one/a"
    names.forget(_LATER, is_turning=False)
    assert meant(names, "a") == f"{two}/two/a"


def test_resolver_drops_its_cache_when_a_call_changes_the_meaning_of_paths(names: PathResolver, two: Path) -> None:
    """After a call that changes the meaning of paths, nothing is cached until the call has certainly been executed.

    The call may be executed after the next call of another thread.
    """
    assert meant(names, "a") == f"{two}/one/a"
    names.forget(_BEGIN, is_turning=True)
    assert meant(names, "a") == f"{two}/one/a"
    os.chdir(two / "two")
    assert meant(names, "a") == f"{two}/two/a"
    assert names.until > _BEGIN


def test_resolver_follows_a_new_link_of_another_process_when_the_cache_expires(names: PathResolver, two: Path) -> None:
    """A link that another process made is followed when the cache expires.

    Calls of the task itself that make a link clear the cache at once.
    """
    assert meant(names, f"{two}/one/a") == f"{two}/one/a"
    (two / "one").rmdir()
    (two / "one").symlink_to("two")
    assert meant(names, f"{two}/one/a") == f"{two}/one/a"
    names.forget(_LATER, is_turning=False)
    assert meant(names, f"{two}/one/a") == f"{two}/two/a"


def test_resolver_reads_a_file_in_a_cached_directory_only_to_follow_a_link(names: PathResolver, two: Path) -> None:
    """In a cached directory, a file is inspected only if a link in its place has to be followed.

    Otherwise, the resolver returns None as the state of the file.
    """
    (two / "one" / "link").symlink_to("../two/aim")
    thread = threading.get_native_id()
    assert names.of(thread, None, "a", False) == (f"{two}/one/a", ABSENT)
    assert names.of(thread, None, "link", False) == (f"{two}/one/link", None)
    assert names.of(thread, None, "link", True) == (f"{two}/two/aim", ABSENT)
    assert names.of(thread, None, "b", True) == (f"{two}/one/b", ABSENT)


@pytest.mark.parametrize(("text", "path"), [("", "one"), (".", "one"), ("..", ""), ("./", "one"), ("../two", "two")])
def test_resolver_does_not_cache_paths_with_dots(names: PathResolver, two: Path, text: str, path: str) -> None:
    """The paths `.`, `..`, `./` and the empty path are not cached."""
    for _ in range(2):
        assert meant(names, "a") == f"{two}/one/a"
        assert meant(names, text) == f"{two}/{path}".rstrip("/")

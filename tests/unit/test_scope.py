"""Where the content of files matters, and the repositories that a task comes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from outlive.observe.place import place_of
from outlive.observe.scope import MOST_REPOSITORIES, Scope

if TYPE_CHECKING:
    from pathlib import Path

    from outlive.observe.place import Place


def repository(place: Path) -> Path:
    """Something that looks like one."""
    for name in ("objects", "refs"):
        (place / ".git" / name).mkdir(parents=True)
    (place / ".git" / "HEAD").touch()
    return place


class Walk:
    """A task's way through a file system."""

    def __init__(self, home: Path, *known: Path) -> None:
        self.scope = Scope([place_of(str(each)) for each in (home, *known)])
        self.scope.on_further = self._meet
        self.met: list[str | None] = []

    def _meet(self, place: Place | None) -> None:
        self.met.append(None if place is None else place.top or place.git_directory)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's own directory."""
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    return place


def test_a_repository_is_met_once_by_whatever_is_changed_in_it_first(home: Path) -> None:
    """A file deep in its tree, or what git keeps itself; a submodule of it is one more."""
    for number, name in enumerate(("a/b/new", "a", ".git/index.lock", ".git/refs/heads/main")):
        other = repository(home / f"other{number}")
        walk = Walk(home)
        assert walk.scope.concerns(str(other / name)) is (None if name.endswith(".lock") else True), name
        assert walk.scope.concerns(str(other / "a" / "again"))
        assert walk.met == [str(other)], name
        inner = repository(other / "a" / "inner")
        assert walk.scope.concerns(str(inner / "x"))
        assert walk.met == [str(other)], name


def test_one_without_a_tree_is_met_too(home: Path) -> None:
    """What is pushed there moves its branches."""
    bare = repository(home / "x").joinpath(".git").rename(home / "bare.git")
    walk = Walk(home)
    assert walk.scope.concerns(str(bare / "refs" / "heads" / "main"))
    assert walk.scope.concerns(str(bare / "objects" / "pack" / "x")) is None
    assert walk.met == [str(bare)]


def test_what_the_task_makes_or_moves_itself_is_not_met(home: Path) -> None:
    """A clone was no repository when it was begun; one that was moved is told by the name it had."""
    walk = Walk(home)
    (home / "clone").mkdir()
    walk.scope.concerns(str(home / "clone" / ".git"))
    repository(home / "clone")
    walk.scope.concerns(str(home / "clone" / "src" / "a"))
    repository(home / "around" / "moved")
    walk.scope.leave_out(str(home / "around"))
    walk.scope.concerns(str(home / "around" / "moved" / "a"))
    assert walk.met == []


def test_one_that_all_of_a_users_files_lie_in_is_not_met(home: Path) -> None:
    """Every cache would be a part of it."""
    repository(home)
    repository(home.parent)
    walk = Walk(home.parent.parent)
    walk.scope.concerns(str(home / ".cache" / "x"))
    assert walk.met == []
    walk.scope.concerns(str(repository(home / "work") / "x"))
    assert walk.met == [str(home / "work")]


def test_there_is_room_for_some_and_that_there_were_more_is_said_once(home: Path) -> None:
    """A task that goes through all repositories of a machine."""
    known = repository(home / "known")
    walk = Walk(known)
    others = [repository(home / f"other{number}") for number in range(MOST_REPOSITORIES + 2)]
    for other in others:
        walk.scope.concerns(str(other / "x"))
    assert walk.met == [*map(str, others[: MOST_REPOSITORIES - 1]), None]

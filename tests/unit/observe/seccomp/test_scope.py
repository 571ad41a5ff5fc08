"""Which paths are observed, and which other repositories count because a task changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from outlive.observe.git.repository import find_repository
from outlive.observe.seccomp.scope import MOST_REPOSITORIES, Scope

if TYPE_CHECKING:
    from pathlib import Path

    from outlive.observe.git.repository import Repository


def repository(place: Path) -> Path:
    """Create a directory that looks like a repository."""
    for name in ("objects", "refs"):
        (place / ".git" / name).mkdir(parents=True)
    (place / ".git" / "HEAD").touch()
    return place


class Walk:
    """The paths of a task's calls, and the other repositories that were reported for them."""

    def __init__(self, home: Path, *known: Path) -> None:
        found = [find_repository(str(each)) for each in (home, *known)]
        self.scope = Scope(each for each in found if each is not None)
        self.scope.on_further = self._meet
        self.met: list[str | None] = []

    def _meet(self, repository: Repository | None) -> None:
        self.met.append(None if repository is None else repository.top or repository.git_dir)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a home directory of the user."""
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    return place


def test_scope_reports_a_repository_once_at_the_first_change_in_it(home: Path) -> None:
    """A repository is reported once, at the first change in it, even of a file deep in it or of a file of git.

    A submodule counts as a part of the reported repository.
    """
    for number, name in enumerate(("a/b/new", "a", ".git/index.lock", ".git/refs/heads/main")):
        other = repository(home / f"other{number}")
        walk = Walk(home)
        assert walk.scope.concerns(str(other / name)) is (None if name.endswith(".lock") else True), name
        assert walk.scope.concerns(str(other / "a" / "again"))
        assert walk.met == [str(other)], name
        inner = repository(other / "a" / "inner")
        assert walk.scope.concerns(str(inner / "x"))
        assert walk.met == [str(other)], name


def test_scope_reports_a_bare_repository(home: Path) -> None:
    """A bare repository is reported. A push to it changes its branches."""
    bare = repository(home / "x").joinpath(".git").rename(home / "bare.git")
    walk = Walk(home)
    assert walk.scope.concerns(str(bare / "refs" / "heads" / "main"))
    assert walk.scope.concerns(str(bare / "objects" / "pack" / "x")) is None
    assert walk.met == [str(bare)]


def test_scope_does_not_report_a_repository_that_the_task_made_or_moved(home: Path) -> None:
    """A repository that the task itself cloned or moved is not reported.

    A cloned repository did not exist before. A moved one is recorded under its old name.
    """
    walk = Walk(home)
    (home / "clone").mkdir()
    walk.scope.concerns(str(home / "clone" / ".git"))
    repository(home / "clone")
    walk.scope.concerns(str(home / "clone" / "src" / "a"))
    repository(home / "around" / "moved")
    walk.scope.leave_out(str(home / "around"))
    walk.scope.concerns(str(home / "around" / "moved" / "a"))
    assert walk.met == []


def test_scope_does_not_report_a_repository_around_the_home_directory(home: Path) -> None:
    """If the home directory is in a repository, it is not reported. Every file of a cache would belong to it."""
    repository(home)
    repository(home.parent)
    walk = Walk(home.parent.parent)
    walk.scope.concerns(str(home / ".cache" / "x"))
    assert walk.met == []
    walk.scope.concerns(str(repository(home / "work") / "x"))
    assert walk.met == [str(home / "work")]


def test_scope_reports_once_that_there_are_too_many_repositories(home: Path) -> None:
    """If there are too many repositories, this is reported once, as None. No further repository is reported."""
    known = repository(home / "known")
    walk = Walk(known)
    others = [repository(home / f"other{number}") for number in range(MOST_REPOSITORIES + 2)]
    for other in others:
        walk.scope.concerns(str(other / "x"))
    assert walk.met == [*map(str, others[: MOST_REPOSITORIES - 1]), None]

"""Where a command goes by its words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlive.observe.going import goes_to

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_directories_that_it_changes_into_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However they are quoted, one from the other, by an option; not what is no directory."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("a/b", "c", "d e"):
        (tmp_path / name).mkdir(parents=True)
    cases = {
        "cd a && make": ["a"],
        "cd a&&make": ["a"],
        "cd a;cd b": ["a", "a/b"],
        "(cd 'a' && ls); cd \"c\"": ["a", "c"],
        "cd ~/c; cd $HOME/a; cd ${HOME}/a/b": ["c", "a", "a/b"],
        "git -C a stash; make --directory=c": ["a", "c"],
        "env --chdir=a git stash": ["a"],
        "GIT_DIR=a/.git git stash; export GIT_WORK_TREE='c'": ["a", "c"],
        "git --git-dir=.git --work-tree=c log": ["c"],
        "cd none; cd $X; cd; cd -": [],
        "echo cd": [],
        "cd \0": [],
    }
    for text, found in cases.items():
        assert goes_to(("sh", "-c", text), str(tmp_path)) == [str(tmp_path / name) for name in found], text
    assert goes_to(("git", "-C", "d e", "status"), str(tmp_path)) == [str(tmp_path / "d e")]
    assert goes_to((), "/") == []

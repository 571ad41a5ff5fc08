"""The directories that a command changes into, found in its text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlive.observe.shell.cd_targets import goes_to

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_goes_to_finds_the_directories_that_a_command_changes_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directories of `cd`, of options and of variables are found. Missing directories are left out."""
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
        "cd 'd e' && ls": ["d e"],
        "ls  # cd a": [],
        "nohup bash -c 'cd a && make' &": ["a"],
        'echo "$(cd a; ls)" `cd c`': ["a", "c"],
        "bash <<E\ncd a\nE": ["a"],
    }
    for text, found in cases.items():
        assert goes_to(("sh", "-c", text), str(tmp_path)) == [str(tmp_path / name) for name in found], text
    assert goes_to(("git", "-C", "d e", "status"), str(tmp_path)) == [str(tmp_path / "d e")]
    assert goes_to((), "/") == []

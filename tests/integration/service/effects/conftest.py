"""The repositories that tests of effects use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.effects_steps import NAMES, git
from tests.git_steps import Worktree

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench


@pytest.fixture
def repo(bench: Bench) -> Path:
    """Make the project a repository with four tracked files. Three of them have an uncommitted change."""
    bench.env.update(
        **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "t"),
        **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "t@example.org"),
    )
    (bench.project / "dir").mkdir()
    for name in (*NAMES, "other.py"):
        (bench.project / name).write_text("old\n")
    git(bench, "init", "-q")
    git(bench, "add", ".")
    git(bench, "commit", "-q", "-m", "first")
    for name in NAMES:
        (bench.project / name).write_text("fixed\n")
    return bench.project


@pytest.fixture
def tree(bench: Bench) -> Worktree:
    """Make the project a repository with three files."""
    made = Worktree(bench.project)
    made.write("src/deep/c.py", "c = 1\n")
    made.commit(a="a\n", b="b\n")
    return made

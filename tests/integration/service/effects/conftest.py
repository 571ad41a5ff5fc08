"""The repository that all tests of effects use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.effects_steps import NAMES, git

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench


@pytest.fixture
def repo(bench: Bench) -> Path:
    """Make the project a repository. Three tracked files have an uncommitted fix, and one tracked file has none."""
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

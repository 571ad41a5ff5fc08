"""Outlive executes no program that a repository configures, when it takes snapshots and counts commits.

In the test repository, git runs one script in every way that git allows. The script writes a file named `mark`. The
first test checks that git itself runs the script, because otherwise the other tests would prove nothing.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from outlive.domain.effects.drift import Distance, drift
from outlive.domain.git.comparison import compare
from outlive.observe.git.commits import measure_distance
from outlive.observe.git.take_snapshot import take_full, take_quick
from tests.git_steps import ENVIRON, Worktree
from tests.support import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from outlive.domain.git.snapshot import GitState
    from tests.support import Bench

HOOKS = ("post-index-change", "reference-transaction", "post-checkout", "pre-commit", "fsmonitor-watchman")
MISSING = "12" * 20


class Trap:
    """A repository that makes git run a script in every way that git allows."""

    def __init__(self, place: Path) -> None:
        self.mark = place / "mark"
        script = place / "script"
        script.write_text(f"#!/bin/sh\necho sprung >> {self.mark}\nexit 1\n")
        script.chmod(0o755)
        self.tree = Worktree(place / "r")
        self.first = self.tree.commit(a="1\n")
        self.second = self.tree.commit(a="2\n")
        self.tree.write(".gitattributes", "* filter=evil diff=evil\n")
        for name in HOOKS:
            hook = self.tree.path / ".git" / "hooks" / name
            hook.parent.mkdir(exist_ok=True)
            hook.write_text(script.read_text())
            hook.chmod(0o755)
        run = str(script)
        with (self.tree.path / ".git" / "config").open("a") as config:
            config.write(
                f"""[core]
    fsmonitor = {run}
    pager = {run}
    editor = {run}
    sshCommand = {run}
    gitProxy = {run}
    askPass = {run}
    alternateRefsCommand = {run}
    repositoryFormatVersion = 1
[extensions]
    partialClone = origin
[remote "origin"]
    url = ext::{run}
    promisor = true
    uploadpack = {run}
[protocol]
    allow = always
[protocol "ext"]
    allow = always
[filter "evil"]
    clean = {run}
    smudge = {run}
    required = true
[diff "evil"]
    textconv = {run}
    command = {run}
[pager]
    rev-list = {run}
[alias]
    rev-list = !{run}
[credential]
    helper = {run}
[gpg]
    program = {run}
[log]
    showSignature = true
[trace2]
    eventTarget = {place}/mark
"""
            )
        self.tree.write("a", "3\n")

    def is_sprung(self, *words: str) -> bool:
        """Run a git command, and return whether git has run the script."""
        self.mark.unlink(missing_ok=True)
        subprocess.run(["git", *words], cwd=self.tree.path, env=ENVIRON, check=False, capture_output=True, timeout=60)
        sprung = self.mark.exists()
        self.mark.unlink(missing_ok=True)
        return sprung


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    """Return a repository whose configuration makes git run the script."""
    return Trap(tmp_path)


def state(trap: Trap, head: str) -> GitState:
    """Return the git state of the test repository, with HEAD set to a given commit."""
    git = take_quick(str(trap.tree.path)).git
    assert git is not None
    return git.but(head=head)


@pytest.mark.parametrize(
    "words",
    [("status",), ("add", "a"), ("diff",), ("rev-list", "--count", f"{MISSING}..HEAD")],
    ids=lambda each: each[0],
)
def test_git_runs_the_script_of_the_trap(trap: Trap, words: tuple[str, ...]) -> None:
    """Git itself runs the configured script, as file monitor, filter, converter and transport."""
    assert trap.is_sprung(*words)


def test_snapshot_executes_nothing_of_the_repository(trap: Trap) -> None:
    """Snapshots and their comparison find a change without running the script."""
    place = str(trap.tree.path)
    take_quick(place)
    before = take_full(place)
    trap.tree.write("a", "four\n")
    found = compare(before, take_full(place, before=before))
    assert [change.path for change in found.paths] == ["a"]
    assert not trap.mark.exists()


@pytest.mark.parametrize("how", ["auto", "watch", "compare"])
def test_task_is_observed_without_executing_anything_of_the_repository(trap: Trap, bench: Bench, how: str) -> None:
    """A task is observed, and its notice is read after changes, without running the script."""
    task = bench.launch("sleep 0.3; echo 4 > a", "--observe", how, "--session", "s-1", cwd=trap.tree.path)
    bench.run("wait", task, "--no-ack", cwd=trap.tree.path)
    wait_until(lambda: os.path.exists(bench.files(task).compared), "the comparison")
    trap.tree.write("a", "5\n")
    (trap.tree.path / ".git" / "refs" / "heads" / "main").write_text(trap.first + "\n")
    (notice,) = bench.json("inbox", "--session", "s-1", cwd=trap.tree.path)["notices"]
    assert (notice["drift"]["moved"], notice["task"]["effects"]["level"] != "unknown") == (True, True)
    assert not trap.mark.exists()


def test_measure_distance_executes_nothing_of_the_repository(trap: Trap) -> None:
    """`measure_distance` counts commits, or reports a missing object, without running the script."""
    assert measure_distance(state(trap, trap.first), state(trap, trap.second)) == Distance(ahead=1, behind=0)
    assert measure_distance(state(trap, trap.second), state(trap, trap.first)) == Distance(ahead=0, behind=1)
    assert measure_distance(state(trap, MISSING), state(trap, trap.second)) is None
    assert measure_distance(state(trap, trap.second), state(trap, MISSING)) is None
    assert not trap.mark.exists()


def test_measure_distance_reads_no_configuration_of_the_repository(trap: Trap) -> None:
    """`measure_distance` counts commits even if the repository's configuration is malformed."""
    then, now = state(trap, trap.first), state(trap, trap.second)
    (trap.tree.path / ".git" / "config").write_text("[no configuration\n")
    assert measure_distance(then, now) == Distance(ahead=1, behind=0)


def test_measure_distance_ignores_the_environment_of_its_caller(trap: Trap, monkeypatch: pytest.MonkeyPatch) -> None:
    """`measure_distance` gives git no configuration from the environment of its caller."""
    for name, text in {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.pager",
        "GIT_CONFIG_VALUE_0": f"touch {trap.mark}",
        "GIT_TRACE2": str(trap.mark),
        "GIT_TRACE": str(trap.mark),
        "GIT_EXTERNAL_DIFF": f"touch {trap.mark}",
        "GIT_DIR": str(trap.tree.path / ".git"),
    }.items():
        monkeypatch.setenv(name, text)
    assert measure_distance(state(trap, trap.first), state(trap, trap.second)) == Distance(ahead=1, behind=0)
    assert not trap.mark.exists()


def test_measure_distance_counts_commits_of_the_history(tmp_path: Path) -> None:
    """`measure_distance` returns the right numbers for diverged commits, for SHA-256 and for a shallow clone."""
    trees = [Worktree(tmp_path / kind, f"--object-format={kind}") for kind in ("sha1", "sha256")]
    for tree in trees:
        base = tree.commit(a="1\n")
        then = take_quick(str(tree.path))
        tree.commit(a="2\n")
        tree.commit(a="3\n")
        now = take_quick(str(tree.path))
        assert then.git is not None
        assert now.git is not None
        distance = measure_distance(then.git, now.git)
        assert distance == Distance(ahead=2, behind=0)
        assert drift(then, now, distance).summary == (
            f"HEAD moved 2 commits since it ran ({base[:7]} -> {tree.head()[:7]})"
        )
        tree.git("checkout", "-q", "--detach", base)
        tree.commit(b="1\n")
        aside = take_quick(str(tree.path)).git
        assert aside is not None
        assert measure_distance(now.git, aside) == Distance(ahead=1, behind=2)
    trees[0].git("clone", "-q", "--depth=2", f"file://{trees[0].path}", "--branch=main", str(tmp_path / "shallow"))
    shallow = Worktree(tmp_path / "shallow", new=False)
    end = take_quick(str(shallow.path)).git
    assert end is not None
    before = shallow.git("rev-parse", "HEAD~1").decode().strip()
    assert measure_distance(end.but(head=before), end) == Distance(ahead=1, behind=0)


def test_measure_distance_gives_up_when_the_object_store_hangs(trap: Trap) -> None:
    """If the file `shallow` is a pipe, `measure_distance` returns None after its timeout."""
    shallow = trap.tree.path / ".git" / "shallow"
    os.mkfifo(shallow)
    assert measure_distance(state(trap, trap.first), state(trap, trap.second), 0.3) is None


def test_measure_distance_returns_none_when_git_is_missing(trap: Trap, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without git, `measure_distance` returns None. Snapshots are taken even without git."""
    now, then = state(trap, trap.second), state(trap, trap.first)
    monkeypatch.setenv("PATH", "/nonexistent")
    assert measure_distance(then, now) is None
    assert take_full(str(trap.tree.path)).tree is not None

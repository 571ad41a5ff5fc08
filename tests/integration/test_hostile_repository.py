"""Nothing that a repository configures is executed, by looking at it or by counting its commits.

Every way in which git would run something leads to one script that leaves a mark. Each is first seen
to work with git itself: a trap that nothing springs proves nothing.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from outlive.domain.comparison import compare
from outlive.domain.drift import Distance, drift
from outlive.observe.commits import measure_distance
from outlive.observe.snapshot import take_full, take_quick
from tests.git_steps import ENVIRON, Worktree
from tests.support import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from outlive.domain.snapshot import GitState
    from tests.support import Bench

HOOKS = ("post-index-change", "reference-transaction", "post-checkout", "pre-commit", "fsmonitor-watchman")
MISSING = "12" * 20


class Trap:
    """A repository that runs a script wherever git lets it."""

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
        """Whether git itself falls into it with this command."""
        self.mark.unlink(missing_ok=True)
        subprocess.run(["git", *words], cwd=self.tree.path, env=ENVIRON, check=False, capture_output=True, timeout=60)
        sprung = self.mark.exists()
        self.mark.unlink(missing_ok=True)
        return sprung


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    """A repository that would run something."""
    return Trap(tmp_path)


def state(trap: Trap, head: str) -> GitState:
    """The repository with HEAD at some commit."""
    git = take_quick(str(trap.tree.path)).git
    assert git is not None
    return git.but(head=head)


@pytest.mark.parametrize(
    "words",
    [("status",), ("add", "a"), ("diff",), ("rev-list", "--count", f"{MISSING}..HEAD")],
    ids=lambda each: each[0],
)
def test_the_trap_works(trap: Trap, words: tuple[str, ...]) -> None:
    """Git runs what the repository configures: monitor, filter, converter, transport."""
    assert trap.is_sprung(*words)


def test_looking_executes_nothing(trap: Trap) -> None:
    """Snapshots before and after, and their comparison, leave no mark, and see the change."""
    place = str(trap.tree.path)
    take_quick(place)
    before = take_full(place)
    trap.tree.write("a", "four\n")
    found = compare(before, take_full(place, before=before))
    assert [change.path for change in found.paths] == ["a"]
    assert not trap.mark.exists()


@pytest.mark.parametrize("how", ["auto", "watch", "compare"])
def test_a_task_in_it_is_looked_at_without_executing_anything(trap: Trap, bench: Bench, how: str) -> None:
    """Before, beside and after the command, and when its notice is read with files changed and HEAD moved."""
    task = bench.launch("sleep 0.3; echo 4 > a", "--observe", how, "--session", "s-1", cwd=trap.tree.path)
    bench.run("wait", task, "--no-ack", cwd=trap.tree.path)
    wait_until(lambda: os.path.exists(bench.files(task).compared), "the comparison")
    trap.tree.write("a", "5\n")
    (trap.tree.path / ".git" / "refs" / "heads" / "main").write_text(trap.first + "\n")
    (notice,) = bench.json("inbox", "--session", "s-1", cwd=trap.tree.path)["notices"]
    assert (notice["drift"]["moved"], notice["task"]["effects"]["level"] != "unknown") == (True, True)
    assert not trap.mark.exists()


def test_counting_executes_nothing(trap: Trap) -> None:
    """Commits are counted, or not, without a mark: also where an object is missing that a remote promises."""
    assert measure_distance(state(trap, trap.first), state(trap, trap.second)) == Distance(ahead=1, behind=0)
    assert measure_distance(state(trap, trap.second), state(trap, trap.first)) == Distance(ahead=0, behind=1)
    assert measure_distance(state(trap, MISSING), state(trap, trap.second)) is None
    assert measure_distance(state(trap, trap.second), state(trap, MISSING)) is None
    assert not trap.mark.exists()


def test_counting_reads_no_configuration(trap: Trap) -> None:
    """Git is not shown the repository's configuration: it would stumble over this one."""
    then, now = state(trap, trap.first), state(trap, trap.second)
    (trap.tree.path / ".git" / "config").write_text("[no configuration\n")
    assert measure_distance(then, now) == Distance(ahead=1, behind=0)


def test_the_environment_adds_nothing(trap: Trap, monkeypatch: pytest.MonkeyPatch) -> None:
    """Configuration in the environment of whoever reads a notice does not reach git either."""
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


def test_distances_are_those_of_history(tmp_path: Path) -> None:
    """Ahead, behind, on another line, in SHA-256, in a shallow clone: counted, or honestly not."""
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


def test_an_object_store_that_hangs_is_given_up(trap: Trap) -> None:
    """A pipe where a file of objects should be costs the timeout, not the reader."""
    shallow = trap.tree.path / ".git" / "shallow"
    os.mkfifo(shallow)
    assert measure_distance(state(trap, trap.first), state(trap, trap.second), 0.3) is None


def test_without_git_nothing_is_counted(trap: Trap, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without git has snapshots all the same."""
    now, then = state(trap, trap.second), state(trap, trap.first)
    monkeypatch.setenv("PATH", "/nonexistent")
    assert measure_distance(then, now) is None
    assert take_full(str(trap.tree.path)).tree is not None

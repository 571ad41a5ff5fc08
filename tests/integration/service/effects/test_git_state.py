"""The state of git repositories that a task changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from outlive.linux.seccomp import is_known_machine
from tests.effects_steps import git, paths, touched

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench

pytestmark = pytest.mark.skipif(not is_known_machine(), reason="the calls of this machine are not known")


def test_gitignore_and_github_are_no_git_state(bench: Bench, repo: Path) -> None:
    """Changes of `.gitignore` and `.github` are listed as changed files, and not as changes of git's own state."""
    (repo / ".gitignore").write_text("x\n")
    found = touched(bench, "echo y >> .gitignore; mkdir .github; echo z > .github/z.yml")
    assert found["changed"] == paths(bench, ".gitignore")
    assert found["created"] == paths(bench, ".github/z.yml")
    assert found["git"] == []


@pytest.mark.usefixtures("repo")
@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("git notes add -m x", "notes commits"),
        ("git update-ref refs/mine/x HEAD", "ref mine/x"),
        ("git replace -f HEAD $(git commit-tree -m x HEAD^{tree})", "replacement of"),
        ("echo true > .git/hooks/pre-commit", "hook pre-commit"),
        ("echo x > .git/info/exclude", "info/exclude"),
        ("git config extensions.worktreeConfig true; git config --worktree a.b c", "config.worktree"),
    ],
)
def test_every_kind_of_shared_git_state_is_reported(bench: Bench, text: str, what: str) -> None:
    """Changes of notes, other refs, replacements, hooks and configuration are reported, as those of branches are."""
    found = touched(bench, text)
    assert what in " ".join(each["what"] for each in found["git"])
    assert found["shared"]


@pytest.mark.usefixtures("repo")
@pytest.mark.parametrize("text", ["git gc -q", "git pack-refs --all --prune", "git branch one; git gc -q"])
def test_packed_branches_are_not_reported_as_moved(bench: Bench, text: str) -> None:
    """After `git gc` or `git pack-refs`, no branch is reported as moved.

    These commands remove the files of branches, but the branches stay at their commits.
    """
    git(bench, "tag", "v1")
    found = {each["what"] for each in touched(bench, text)["git"]}
    assert found == {"packed-refs", *(["branch one"] if "one" in text else [])}


def test_effects_in_other_repositories_name_the_repository(bench: Bench, repo: Path) -> None:
    """A commit and a push in other repositories are reported with the paths of the repositories.

    A new clone is not reported.
    """
    lib, bare, clone = (bench.root / name for name in ("lib", "bare.git", "clone"))
    git(bench, "clone", "-q", str(repo), str(lib))
    git(bench, "clone", "-q", "--bare", str(repo), str(bare))
    script = f"cd {lib}; echo new > a.py; git commit -qam x; git push -q {bare} HEAD; git clone -q {bare} {clone}"
    (bench.root / "script").write_text(script)
    task = bench.launch(f"sh {bench.root}/script")
    bench.run("wait", task)
    found = bench.json("effects", task)
    branch = git(bench, "branch", "--show-current")
    assert found["changed"] == [str(lib / "a.py")]
    assert found["created"] == found["outside"] == []
    assert {f"branch {branch} of {lib}", f"branch {branch} of {bare}"} <= {each["what"] for each in found["git"]}
    assert f"1 of these in {lib}" in found["summary"]
    assert str(clone) not in json.dumps({**found, "declared": None, "git": [each["what"] for each in found["git"]]})


@pytest.mark.usefixtures("repo")
def test_refs_of_a_bare_repository_are_reported(bench: Bench) -> None:
    """A new branch and a new tag in a bare repository are reported as git state."""
    git(bench, "clone", "-q", "--bare", ".", "bare")
    found = touched(bench, "git branch new; git tag old", "--cwd", str(bench.project / "bare"))
    assert ([each["what"] for each in found["git"]], found["level"]) == (["branch new", "tag old"], "observed")
    assert (found["created"], found["outside"]) == ([], [])

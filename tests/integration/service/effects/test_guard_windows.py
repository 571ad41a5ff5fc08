"""The guard, called from the command line while real tasks have changed files and not restored them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from outlive.linux.seccomp import is_known_machine
from tests.effects_steps import NAMES, git, paths, window_on
from tests.git_steps import Worktree
from tests.session_steps import begin, until
from tests.support import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench

pytestmark = pytest.mark.skipif(not is_known_machine(), reason="the calls of this machine are not known")


def test_guard_names_the_task_with_a_window_on_a_path(bench: Bench, repo: Path) -> None:
    """`guard` names a task that has changed the given file, or a file in the given directory, and not restored it.

    It also does so for a command that uses such a file.
    """
    task = bench.launch(f"git stash push -q; {until('go')}; git stash pop -q")
    window_on(bench, task, *NAMES)
    for path, held in (("dir/c.py", [task]), ("dir", [task]), ("other.py", []), (".", [task])):
        found = bench.json("guard", path)
        assert ([each["task"] for each in found["holders"]], found["clear"]) == (held, not held), path
    commands = {
        "git commit -am x": 1,
        "git status": 1,
        "cat dir/c.py": 1,
        "make test": 1,
        "cat other.py": 0,
        "ls /usr": 0,
    }
    for command, code in commands.items():
        assert bench.run("guard", "--exit-code", "--command", command).returncode == code, command
    assert f"task {task} has changed a.py, b.py, dir/c.py and not restored them" in bench.run("guard", "a.py").stdout
    assert bench.run("guard", "a.py", env={"OUTLIVE_TASK": task}).stdout == "clear\n"
    (repo / "go").touch()
    bench.run("wait", task)
    assert bench.run("guard", ".", "--exit-code").stdout == "clear\n"


def test_guard_covers_paths_through_a_link_that_a_task_changed(bench: Bench, repo: Path) -> None:
    """If a task changed a link, `guard` names the task for paths through the link.

    It does not name the task for the direct path of the file to which the link led.
    """
    for name in ("one", "two", "two/deep"):
        (repo / name).mkdir()
        (repo / name / "f").write_text(f"{name}\n")
    (repo / "two" / "deep" / "back").symlink_to("../../one")
    (repo / "now").symlink_to("one")
    (repo / "around").symlink_to("now/../now")
    (repo / "circle").symlink_to("circle")
    (bench.root / "outside").symlink_to("project/now")
    git(bench, "add", ".")
    git(bench, "commit", "-q", "-m", "links")
    task = bench.launch(f"ln -sfn two now; {until('go')}; ln -sfn one now")
    window_on(bench, task, "now")
    for words in (
        *(("now",), ("now/f",), ("now/deep/back/f",), ("around/f",), (f"{bench.root}/outside/f",), ("now/../now/f",)),
        *(("--command", command) for command in ("cat now/f", "cat around/*", "cd now && cat f", "cd now; ls")),
        ("--command", f"cd {bench.root}/outside && make", "--cwd", "/"),
    ):
        assert [each["task"] for each in bench.json("guard", *words)["holders"]] == [task], words
    for path in ("one/f", "two/f", "two/deep/back/f", "circle/f", "nowhere/f", "now.py", "now/.."):
        assert bench.json("guard", path)["clear"] == (path != "now/.."), path
    (repo / "go").touch()
    bench.run("wait", task)
    assert bench.json("guard", "now/f", "around/f")["clear"]


@pytest.mark.parametrize("is_first", [False, True])
def test_guard_names_the_task_with_the_stash_in_every_worktree(bench: Bench, repo: Path, *, is_first: bool) -> None:
    """If a task has stashed files, `guard` names it for `git stash pop` in any worktree of the repository.

    All worktrees of a repository share one stash.
    """
    linked = bench.root / "linked"
    git(bench, "worktree", "add", "-q", str(linked))
    if not is_first:
        git(bench, "stash", "push", "-q", "other.py", "a.py")
    task = bench.launch(f"git stash push -q; {until('go')}; git stash pop -q")
    wait_until(lambda: bench.json("effects", task, "--open")["windows"], "the stash")
    for command in ("git stash pop", "git -c a.b=c stash push -m x", f"cd /; git -C {linked} stash drop"):
        (holder,) = bench.json("guard", "--command", command, cwd=linked)["holders"]
        assert (holder["task"], holder["by"]) == (task, "git stash push -q"), command
    assert f"task {task} has changed the stash and not restored it, for" in bench.ok(
        "guard", "--command", "git stash pop", cwd=linked
    )
    for words in (("--command", "git commit -am x"), ("--command", "cat *"), ("a.py",), (".",)):
        assert bench.json("guard", *words, cwd=linked)["clear"], words
    assert "the stash" not in json.dumps([begin(bench, "s-2"), bench.json("guard", "a.py")])
    (repo / "go").touch()
    bench.run("wait", task)
    assert bench.json("guard", "--command", "git stash pop", cwd=linked)["clear"]
    assert bench.json("effects", task)["paths_changed"] == 0


@pytest.mark.parametrize("is_linked", [False, True])
def test_guard_names_a_switched_branch_for_git_commands_only(bench: Bench, repo: Path, *, is_linked: bool) -> None:
    """While a task has switched the branch, `guard` names the task for git commands.

    For files and other commands it is clear.
    """
    place = repo
    if is_linked:
        place = bench.root / "linked"
        git(bench, "worktree", "add", "-q", str(place))
    (place / "a.py").write_text("not committed\n")
    task = bench.launch(f"git checkout -q -b fix; {until('go')}; git checkout -q -", cwd=place)
    (held,) = wait_until(lambda: bench.json("effects", task, "--open", cwd=place)["windows"], "the other branch")
    head = f"{repo}/.git/worktrees/linked/HEAD" if is_linked else ".git/HEAD"
    assert (held["scope"], held["paths"], held["by"]) == (str(place), [head], "git checkout -q -b fix")
    assert f"task {task} has changed HEAD and not restored it, for" in bench.ok(
        "guard", "--command", "git commit -am x", cwd=place
    )
    assert bench.ok("effects", task, "--open", cwd=place).startswith("window of HEAD, open for")
    for words in (("--command", "make test"), ("--command", "rg word"), ("a.py",), (".",)):
        assert bench.json("guard", *words, cwd=place)["clear"], words
    assert bench.json("guard", "--command", "git log", "--cwd", str(repo))["clear"] is is_linked
    handed = begin(bench, "s-2", cwd=place)["hand_off"]
    assert [each["task"] for each in handed["open_windows"]] == [task]
    (place / "go").touch()
    bench.run("wait", task)
    assert bench.json("guard", "--command", "git commit -am x", cwd=place)["clear"]
    assert bench.json("effects", task)["windows"] == []


def test_window_in_a_nested_worktree_is_not_reported_in_the_tree_around_it(bench: Bench, repo: Path) -> None:
    """If a task has changed files in a nested worktree, `guard` does not name it for commands in the outer worktree."""
    inner = repo / "worktrees" / "one"
    git(bench, "worktree", "add", "-q", str(inner))
    task = bench.launch(f"mv a.py b.py; {until('go')}; mv b.py a.py", cwd=inner)
    wait_until(lambda: bench.json("effects", task, "--open", cwd=inner)["windows"], "the move")
    for command in ("git commit -am x", "make test"):
        assert bench.json("guard", "--command", command)["clear"], command
        assert not bench.json("guard", "--command", command, cwd=inner)["clear"], command
    for words in (("worktrees/one/a.py",), ("--command", f"cat {inner}/a.py"), ("--command", f"git -C {inner} log")):
        assert not bench.json("guard", *words)["clear"], words
    assert begin(bench, "s-1")["hand_off"]["open_windows"] == []
    assert [each["task"] for each in begin(bench, "s-2", cwd=inner)["hand_off"]["open_windows"]] == [task]
    (inner / "go").touch()
    bench.run("wait", task)


def test_guard_names_files_that_a_failed_task_left_changed_until_they_are_restored(bench: Bench, repo: Path) -> None:
    """`guard` names a failed task that left its files stashed, until a user restores the files.

    It does not name a task that succeeded.
    """
    died = bench.launch("git stash push -q; kill -9 $$")
    bench.run("wait", died)
    assert f"task {died} has ended and left a.py, b.py, dir/c.py changed" in bench.run("guard", "a.py").stdout
    (holder,) = bench.json("guard", "--command", "git commit -am x")["holders"]
    assert (holder["task"], holder["left"]) == (died, True)
    git(bench, "checkout", "stash@{0}", "--", "a.py")
    assert bench.json("guard", "a.py")["clear"]
    (held,) = bench.json("effects", died, "--open")["windows"]
    assert held["paths"] == ["b.py", "dir/c.py"]
    git(bench, "checkout", "stash@{0}", "--", ".")
    assert bench.json("guard", ".")["clear"]
    begin(bench, "s-1")
    edited = bench.launch("echo more >> other.py", "--session", "s-1")
    bench.run("wait", edited, "--no-ack")
    assert bench.json("guard", "other.py")["clear"]
    assert (repo / "other.py").read_text() == "old\nmore\n"


@pytest.mark.usefixtures("repo")
def test_window_in_a_nested_repository_is_reported_there(bench: Bench) -> None:
    """If a task of the outer repository has changed a file in a nested one, `guard` names the task for this file."""
    inner = Worktree(bench.project / "inner")
    inner.commit(x="old\n")
    task = bench.launch(f"echo held > inner/x; {until('go')}; echo old > inner/x")
    window_on(bench, task, "inner/x")
    for words in (("inner/x",), ("--command", "git add .", "--cwd", str(inner.path))):
        assert [each["task"] for each in bench.json("guard", *words)["holders"]] == [task]
    handed = begin(bench, "s-in", "--cwd", str(inner.path))["hand_off"]
    assert [each["task"] for each in handed["open_windows"]] == [task]
    (bench.project / "go").touch()
    bench.run("wait", task)
    assert bench.json("guard", "inner/x")["clear"]


@pytest.mark.usefixtures("repo")
def test_window_in_another_tree_is_named_with_its_directory(bench: Bench) -> None:
    """`guard`, `gate` and the hand-off name the directory of another worktree in which a task has changed files.

    Otherwise a file could be mistaken for the file of the same name in this project.
    """
    inner = Worktree(bench.project / "inner")
    inner.commit(**{"a.py": "old\n"})
    begin(bench, "s-1")
    task = bench.launch(f"cd inner; echo held > a.py; {until('../go')}; echo old > a.py", "--session", "s-1")
    window_on(bench, task, "a.py")
    told = f"task {task} has changed a.py in {inner.path} and not restored it, for "
    asked = (bench.ok("guard", "--command", command) for command in ("git add .", "cat inner/a.py"))
    for text in (*asked, bench.ok("gate", "--session", "s-1"), bench.ok("hand-off", "--session", "s-1")):
        assert told in text
    assert "has changed a.py and not restored it, for " in bench.ok("guard", "a.py", "--cwd", str(inner.path))
    assert bench.ok("guard", "a.py").strip() == "clear"
    (bench.project / "go").touch()
    bench.run("wait", task)


@pytest.mark.parametrize(
    "text",
    [
        *("cd {0} && {1}", "git -C {0} stash -q; cd '{0}'; {2}", "(cd project/dir;cd ..; {1})"),
        *("cd $THERE/dir; cd ..; {1}", "sh there"),
    ],
)
def test_window_is_reported_in_the_repository_that_the_command_enters(bench: Bench, repo: Path, text: str) -> None:
    """If a task was launched above a repository and its command enters the repository, `guard` names its changes there.

    The command enters the repository by its text, by a variable or by a script.
    """
    rest = f"{until('go')}; git stash pop -q"
    bench.env["THERE"] = str(repo)
    (bench.root / "there").write_text(f"cd {repo}; git stash push -q; {rest}\n")
    task = bench.launch(text.format(repo, f"git stash push -q; {rest}", rest), cwd=bench.root)
    window_on(bench, task, *NAMES)
    assert [each["task"] for each in bench.json("guard", "a.py")["holders"]] == [task]
    assert [each["task"] for each in begin(bench, "s-1")["hand_off"]["open_windows"]] == [task]
    (repo / "go").touch()
    bench.run("wait", task)
    found = bench.json("effects", task)
    assert (found["restored"], found["changed"], found["outside"]) == (paths(bench, *NAMES), [], [])


def test_guard_takes_paths_or_a_command(bench: Bench) -> None:
    """`guard` exits with 2 if it gets both paths and a command, or neither of them."""
    for words in (("guard",), ("guard", "a", "--command", "ls")):
        refused = bench.run(*words)
        assert (refused.returncode, "guard takes paths, or one command" in refused.stderr) == (2, True)

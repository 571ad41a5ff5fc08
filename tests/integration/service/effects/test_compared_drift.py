"""Drift, which is what changed after a task, found by a comparison of the files after the task with the files now."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from outlive.domain.effects.drift import drift
from outlive.domain.git.snapshot import GONE, UNSEEN
from outlive.domain.git.snapshot_json import from_json
from outlive.observe.git.compare import compare_with_first, keep_first
from outlive.observe.git.take_snapshot import as_left, take_full, take_quick
from tests.comparison_steps import begun, can_observe, compared
from tests.git_steps import Worktree
from tests.support import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench


def drifted(bench: Bench) -> Any:
    """Return what has changed since the task, as the notice of the session's only task reports it."""
    (notice,) = bench.json("inbox", "--session", "s-1", "--peek")["notices"]
    return notice["drift"]


@can_observe
def test_notice_names_files_that_changed_after_the_task(bench: Bench, tree: Worktree) -> None:
    """Drift names files that changed after the task without a commit, even if they had uncommitted changes before."""
    tree.write("a", "dirty\n")
    task = begun(bench, "echo mine >> b", "--session", "s-1")
    (bench.root / "go").touch()
    bench.run("wait", task, "--no-ack")
    wait_until(lambda: os.path.exists(bench.files(task).compared), "the comparison")
    assert (drifted(bench)["moved"], drifted(bench)["details"]) == (False, [])
    tree.write("src/deep/c.py", "c = 2\n")
    assert drifted(bench)["summary"] == "1 tracked file changed since it ran, read by it or not: src/deep/c.py"
    tree.write("a", "dirtier\n")
    tree.write("b", "not mine\n")
    (handed,) = bench.json("hand-off", "--session", "s-1")["ended"]
    told = drifted(bench)
    assert handed["drift"] == bench.json("show", task)["drift"] == told, "the reported drift differs"
    assert f"\nsince     {'; '.join(told['details'])}\n" in bench.ok("show", task)
    (notice,) = bench.json("inbox", "--session", "s-1")["notices"]
    assert len(notice["drift"]["details"]) == 2
    tracked = "2 tracked files changed since it ran, read by it or not: a, src/deep/c.py"
    assert f"since then: {tracked}; 1 file it touched changed" in notice["text"]


@can_observe
def test_file_removed_from_the_index_after_the_task_is_drift(bench: Bench, tree: Worktree) -> None:
    """After a `git rm`, the notice says that tracked files were added, moved or removed after the task."""
    task = begun(bench, "true", "--session", "s-1")
    compared(bench, task)
    tree.git("rm", "-q", "b")
    assert drifted(bench)["summary"] == "tracked files were added, moved or removed since it ran"


@can_observe
def test_file_changed_and_staged_after_the_task_is_drift(bench: Bench, tree: Worktree) -> None:
    """A file that is changed and staged after the task is reported as changed since.

    Staging the task's changes is not.
    """
    task = begun(bench, "echo mine >> a; echo new > new", "--session", "s-1")
    compared(bench, task)
    tree.git("add", "a", "new")
    assert drifted(bench)["moved"] is False
    tree.write("b", "another\n")
    tree.git("add", "b")
    assert drifted(bench)["summary"] == "1 tracked file changed since it ran, read by it or not: b"
    tree.git("reset", "-q")
    tree.git("checkout", "-q", "b")
    assert drifted(bench)["moved"] is False
    tree.git("mv", "src", "moved")
    assert "tracked files were added, moved or removed since it ran" in drifted(bench)["details"]


def test_change_between_the_end_and_the_last_snapshot_is_drift_or_unknown(bench: Bench, tree: Worktree) -> None:
    """A change after the task's end, but before the last snapshot, is never listed as a change by the task.

    It is reported as a change since the task, or as unknown.
    """
    ended_ns = max(os.lstat(bench.project / name).st_ctime_ns for name in ("a", "b", "src/deep/c.py", "src/deep"))
    with open(bench.root / "first", "w+b") as file:
        keep_first(file.fileno(), [str(bench.project)], (), None, 0)
        wait_until(lambda: touched_ns(bench.root / "clock") > ended_ns, "the next tick of the kernel's clock")
        quick = [take_quick(str(bench.project))]
        for change, moved in (
            (lambda: None, False),
            ((bench.project / "src" / "deep" / "c.py").unlink, True),
            (lambda: tree.git("checkout", "-q", "src"), None),
            (lambda: tree.git("rm", "-q", "b"), True),
        ):
            change()
            _, after = compare_with_first(
                file.fileno(), quick, since_ns=None, until_ns=ended_ns, seen=(), ignored="/o", worktrees="/o/w"
            )
            then = from_json(after)
            assert then is not None
            now = take_full(str(bench.project), untracked=False)
            assert now.tree is not None
            gone = now.tree.but(tracked={**dict.fromkeys(then.dirty or (), GONE), **now.tree.tracked})
            assert drift(then, now.but(tree=gone), ended_ns=ended_ns).moved is moved


@can_observe
@pytest.mark.usefixtures("tree")
def test_drift_in_further_repositories_names_the_repository(bench: Bench) -> None:
    """Drift is also found in repositories that `--touches` names or the command enters. It names the repository."""
    named, went = Worktree(bench.root / "named"), Worktree(bench.root / "went")
    for each in (named, went):
        each.commit(x="x\n", y="y\n")
    text = f"cd {went.path} && echo mine > y; cd {bench.project}"
    task = begun(bench, text, "--session", "s-1", "--touches", str(named.path))
    compared(bench, task)
    went.git("add", "y")
    assert drifted(bench)["moved"] is False
    went.write("y", "another\n")
    went.git("checkout", "-q", "-b", "topic")
    named.commit(x="another\n")
    named.write("y", "another\n")
    told = [each.split(" (")[0] for each in drifted(bench)["details"]]
    assert told == [
        "1 file it touched changed since",
        f"in {named.path}: HEAD moved 1 commit since it ran",
        f"in {named.path}: 1 tracked file changed since it ran, read by it or not: y",
        f"in {went.path}: HEAD was at main and is now at topic",
    ]
    shutil.rmtree(went.path)
    told = drifted(bench)["details"]
    assert told[-2:] == [f"in {went.path}: the directory is gone", f"in {went.path}: the repository is gone"]


@can_observe
def test_drift_of_very_many_touched_files_is_counted(bench: Bench, tree: Worktree) -> None:
    """If a task touched 600 files, 500 are compared one by one for later changes.

    The rest is compared with the repository.
    """
    tree.commit(**{f"n{number}": "old\n" for number in range(600)})
    task = begun(bench, "for f in n*; do echo new > $f; done", "--session", "s-1")
    compared(bench, task)
    assert drifted(bench)["moved"] is False
    for number in range(600):
        tree.write(f"n{number}", "another\n")
    assert [each.split(" (")[0] for each in drifted(bench)["details"]] == [
        "100 tracked files changed since it ran, read by it or not: n549, n55, n550 and 97 more",
        "at least 500 files it touched changed since",
    ]


@can_observe
def test_drift_ignores_files_that_git_keeps_for_itself(bench: Bench, tree: Worktree) -> None:
    """After a stash of very many files, later changes are known, although git has written files such as ORIG_HEAD."""
    tree.commit(**{f"n{number}": "old\n" for number in range(600)})
    for number in range(600):
        tree.write(f"n{number}", "fix\n")
    compared(bench, begun(bench, "git stash push -q; git stash pop -q", "--session", "s-1"))
    assert drifted(bench)["moved"] is False
    tree.write("a", "another\n")
    assert drifted(bench)["details"] == ["1 tracked file changed since it ran, read by it or not: a"]


def test_touched_files_changed_before_the_snapshot_are_unknown(bench: Bench) -> None:
    """If a caller changes files that the task touched before the keeper has read them, later changes are unknown."""
    paths = [bench.project / name for name in ("kept", "changed", "removed", "directory")]
    paths[-1].mkdir()
    ended_ns = max(map(touched_ns, paths))
    wait_until(lambda: touched_ns(bench.root / "clock") > ended_ns, "the next tick of the kernel's clock")
    paths[1].write_text("changed")
    paths[2].unlink()
    (paths[3] / "new").touch()
    then = as_left(take_quick(str(bench.project), map(str, paths)), ended_ns)
    assert [path.name for path in paths if (then.files or {})[str(path)] == UNSEEN] == ["changed", "removed"]
    assert drift(then, take_quick(str(bench.project), map(str, paths))).unknown == (
        "files it touched: 2 could not be compared",
    )


def touched_ns(path: Path) -> int:
    """Touch a path, and return its new change time in nanoseconds, by the clock of its file system."""
    path.touch()
    return path.stat().st_ctime_ns


@can_observe
def test_change_of_the_users_git_configuration_is_drift(bench: Bench, tree: Worktree) -> None:
    """A change of the user's git configuration, of its link's target, or of an included file is reported.

    It counts as a change since the task. The compared paths are those that git used when the task ran.
    """
    home = bench.root / "home"
    (home / "kept").mkdir(parents=True)
    bench.env = {name: value for name, value in bench.env.items() if not name.startswith(("GIT_CONFIG", "XDG_"))}
    bench.env |= {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
    user, more, other = home / "kept" / "gitconfig", home / "more", home / "other"
    conditions = f'[includeIf "gitdir:{bench.root}/nowhere/"]\npath = ~/other\n'
    user.write_text(f"[core]\neditor = vi\n[include]\n\tpath = ../more # here\n{conditions}")
    (home / ".gitconfig").symlink_to(user)
    task = begun(bench, "true", "--session", "s-1")
    compared(bench, task)
    more.touch()
    more.unlink()
    other.write_text("[core]\n")
    user.write_text(user.read_text())
    assert drifted(bench)["moved"] is False, "a file that git does not read, or an unchanged file, counts as drift"
    bench.env["HOME"] = str(bench.root)
    assert drifted(bench)["moved"] is False, "the home directory of the reading process changes the drift"
    more.write_text("[core]\nautocrlf = true\n")
    summary = drifted(bench)["summary"]
    assert summary.startswith(f"git's configuration changed since it ran ({str(more)[:70]}"), "not the cut path"
    user.write_text("")
    more.unlink()
    assert drifted(bench)["summary"].startswith("git's configuration changed since it ran (")
    tree.git("config", "core.editor", "ed")
    assert len(drifted(bench)["details"]) == 2


@can_observe
def test_commit_of_unchanged_files_moves_only_head(bench: Bench, tree: Worktree) -> None:
    """If a user commits the files as the task left them, only the move of HEAD is reported, and no changed file."""
    tree.write("a", "dirty\n")
    (bench.project / "b").unlink()
    task = begun(bench, "true", "--session", "s-1")
    compared(bench, task)
    tree.git("rm", "-q", "--cached", "b")
    assert drifted(bench)["moved"] is False
    tree.commit()
    (notice,) = bench.json("inbox", "--session", "s-1")["notices"]
    assert ["HEAD moved 1 commit" in each for each in notice["drift"]["details"]] == [True]

"""Comparing all files before and after a task, which finds changes but not who made them."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from outlive.domain.effects.drift import drift
from outlive.domain.git.snapshot import GONE, UNSEEN
from outlive.domain.git.snapshot_json import from_json
from outlive.linux.processes import KEEPER_NAME
from outlive.linux.seccomp import is_known_machine
from outlive.observe.git.compare import compare_with_first, keep_first
from outlive.observe.git.take_snapshot import as_left, take_full, take_quick
from tests.git_steps import ENVIRON, Worktree
from tests.session_steps import begin, until
from tests.support import kill, open_files, parent_of, processes_named, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench

can_observe = pytest.mark.skipif(not is_known_machine(), reason="the calls of this machine are not known")


@pytest.fixture
def tree(bench: Bench) -> Worktree:
    """Make the project a repository with three files."""
    made = Worktree(bench.project)
    made.write("src/deep/c.py", "c = 1\n")
    made.commit(a="a\n", b="b\n")
    return made


def first_look(bench: Bench, task: str) -> bool:
    """Return whether the first snapshot of a running task is complete and its process has ended.

    The snapshot is taken by a fork of the keeper with the lowest CPU priority, which writes to a file without a name.
    If the command ended earlier than the fork, the keeper would kill the fork.
    """
    keeper = bench.keeper(task)
    if any(parent_of(pid) == keeper for pid in processes_named(KEEPER_NAME)):
        return False
    for number in os.listdir(f"/proc/{keeper}/fd"):
        path = f"/proc/{keeper}/fd/{number}"
        try:
            if os.readlink(path).endswith("/first (deleted)"):
                return os.stat(path).st_size > 0
        except OSError:
            continue
    return False


def begun(bench: Bench, text: str, *options: str) -> str:
    """Launch a task that waits for the file `go`, and wait for the task's first snapshot."""
    task = bench.launch(f"{until(str(bench.root / 'go'))}; {text}", *options)
    wait_until(lambda: first_look(bench, task), "the first snapshot")
    return task


def compared(bench: Bench, task: str) -> Any:
    """Let a waiting task continue, and return its effects when the comparison is complete."""
    (bench.root / "go").touch()
    bench.run("wait", task)
    wait_until(lambda: os.path.exists(bench.files(task).compared), "the comparison")
    return bench.json("effects", task)


def hows(bench: Bench, found: Any) -> dict[str, str]:
    """Return how each unattributed path of some effects changed, by the path's name in the project."""
    return {each["path"].removeprefix(f"{bench.project}/"): each["how"] for each in found["unattributed"]}


@can_observe
def test_changes_by_another_process_are_unattributed(bench: Bench, tree: Worktree) -> None:
    """A file that another process changes while the task runs is unattributed. The task's own changes are not."""
    task = begun(bench, "echo more >> a; mkdir -p out/deep; touch out/deep/file src/made")
    tree.write("b", "another\n")
    tree.write("new")
    (bench.project / "src" / "deep" / "c.py").unlink()
    found = compared(bench, task)
    assert hows(bench, found) == {"b": "changed", "src/deep/c.py": "gone", "new": "appeared"}
    assert (found["level"], found["unattributed_in_all"]) == ("observed", 3)
    assert found["changed"] == [str(bench.project / "a")]
    assert "3 files changed by somebody else, or unseen: b, src/deep/c.py, new" in found["summary"]
    assert "changed or written by somebody else, or unseen (3):" in bench.ok("effects", task)


@can_observe
@pytest.mark.parametrize("options", [(), ("--observe", "compare")])
def test_changes_after_the_reported_ending_are_no_effects(
    bench: Bench, tree: Worktree, options: tuple[str, ...]
) -> None:
    """A caller's changes after the reported ending are no effects, even before the second snapshot is complete."""
    for number in range(8000):
        tree.write(f"many/{number // 100}/{number}", f"{number}\n")
    tree.commit()
    task = begun(bench, "true", *options)
    (bench.root / "go").touch()
    bench.run("wait", task)
    (bench.project / "src" / "deep" / "c.py").unlink()
    tree.write("many/79/7900", "later\n")
    tree.write("src/new")
    tree.git("stash", "--quiet")
    wait_until(lambda: os.path.exists(bench.files(task).compared), "the comparison")
    found = bench.json("effects", task)
    assert hows(bench, found) == {}
    assert "stash" not in found["summary"]


@can_observe
def test_commit_by_another_process_is_reported(bench: Bench, tree: Worktree) -> None:
    """If HEAD moves while the task runs, and no call of the task moved it, the effects report the move."""
    task = begun(bench, "true")
    tree.commit(a="second\n")
    found = compared(bench, task)
    assert (found["git"], hows(bench, found)) == ([], {"a": "changed"})
    assert "HEAD moved while it ran" in found["moved"]
    assert "by somebody else, or unseen" in found["summary"]


@can_observe
def test_commit_by_another_process_during_the_task_is_drift(bench: Bench, tree: Worktree) -> None:
    """If another process commits while the task runs, the notice of the task reports drift."""
    begin(bench, "s-1")
    task = begun(bench, "true", "--session", "s-1")
    tree.commit(a="second\n")
    tree.write("b", "edited\n")
    tree.write("log", "beside\n")
    compared(bench, task)
    (notice,) = bench.json("inbox", "--session", "s-1", "--peek")["notices"]
    assert notice["drift"]["moved"] is True
    assert notice["drift"]["summary"].startswith("HEAD moved while it ran (")
    assert notice["drift"]["details"][1:] == ["2 tracked files changed while it ran, read by it or not: a, b"]
    assert "since then" not in notice["text"], "a change during the task is reported as drift after the task"
    assert "HEAD moved while it ran (" in bench.ok("hand-off", "--session", "s-1")
    tree.commit(a="third\n")
    told = bench.json("show", task)["drift"]["details"]
    assert [each.partition(" (")[0] for each in told[:2]] == [
        "HEAD moved 1 commit since it ran",
        "HEAD moved while it ran",
    ]


@can_observe
@pytest.mark.usefixtures("tree")
def test_drift_is_unknown_until_the_comparison_is_complete(bench: Bench) -> None:
    """A notice says that drift is unknown while the keeper compares, or if the keeper ended without comparing."""
    begin(bench, "s-1")
    task = begun(bench, "true", "--session", "s-1")
    compared(bench, task)
    (notice,) = bench.json("inbox", "--session", "s-1", "--peek")["notices"]
    assert notice["drift"]["moved"] is False
    os.unlink(bench.files(task).compared)
    with open(bench.files(task).record, "r+b"):  # an open record means that the keeper may still compare
        (notice,) = bench.json("inbox", "--session", "s-1", "--peek")["notices"]
    assert notice["drift"]["moved"] is None
    assert "still being compared" in notice["drift"]["summary"]
    (notice,) = bench.json("inbox", "--session", "s-1", "--peek")["notices"]
    assert notice["drift"]["moved"] is None
    assert "was not compared" in notice["drift"]["summary"], "the keeper has exited, so no process will compare"


@can_observe
def test_commit_by_the_task_itself_is_no_drift(bench: Bench, tree: Worktree) -> None:
    """A commit by the task is not drift, even with `--observe compare`, where its author is not known."""
    del tree
    for options in ((), ("--observe", "compare")):
        task = begun(bench, "echo more >> b; git commit -q -a -m more", *options)
        compared(bench, task)
        (bench.root / "go").unlink()
        assert bench.json("show", task)["drift"]["moved"] is False


@can_observe
def test_commit_by_another_process_is_reported_when_the_task_changed_the_index(bench: Bench, tree: Worktree) -> None:
    """If the task stages a file and another process commits, the effects report both."""
    task = begun(bench, "echo more >> b; git add b")
    tree.commit(a="second\n")
    found = compared(bench, task)
    assert {each["what"] for each in found["git"]} == {"index"}
    assert "HEAD moved while it ran" in found["moved"]
    assert "git: index" in found["summary"]
    assert ", by somebody else, or unseen" in found["summary"]


@can_observe
@pytest.mark.usefixtures("tree")
def test_change_before_a_late_first_snapshot_is_reported(bench: Bench) -> None:
    """A file that was changed before a late first snapshot is found by its times, and the delay is reported."""
    task = bench.launch(until(str(bench.root / "go")))
    bench.keeper(task)
    (bench.project / "b").write_text("at once\n")
    wait_until(lambda: first_look(bench, task), "the first snapshot")
    found = compared(bench, task)
    assert hows(bench, found).keys() == {"b"}
    assert "changes in its first moments" in found["uncompared"]


@can_observe
@pytest.mark.usefixtures("tree")
def test_command_that_ends_before_the_first_snapshot_is_not_compared(bench: Bench) -> None:
    """If a command ends before the first snapshot, effects do not say whether other processes changed files."""

    def short() -> str | None:
        task = bench.launch("true")
        bench.run("wait", task)
        return task if bench.show(task)["duration_s"] < 0.03 else None

    task = wait_until(short, "a command that was over soon, on a machine that may be busy")
    wait_until(lambda: os.path.exists(bench.files(task).after), "the last snapshot")
    found = bench.json("effects", task)
    assert (found["unattributed"], found["unattributed_in_all"]) == (None, None)
    assert not os.path.exists(bench.files(task).compared)


@can_observe
@pytest.mark.usefixtures("tree")
def test_task_outside_of_a_repository_is_not_compared(bench: Bench) -> None:
    """If a task runs outside of a repository, its effects do not say whether other processes changed files."""
    task = bench.launch("sleep 0.2", "--cwd", str(bench.root))
    bench.run("wait", task)
    wait_until(lambda: os.path.exists(bench.files(task).after), "the last snapshot")
    assert bench.json("effects", task)["unattributed"] is None


@can_observe
@pytest.mark.parametrize("is_beside", [False, True], ids=["alone", "beside another"])
def test_files_in_a_repository_made_by_the_task_are_not_unattributed(
    bench: Bench, tree: Worktree, *, is_beside: bool
) -> None:
    """Files in a repository that the task created before the first snapshot are not listed as unattributed."""
    place = bench.root / "new"
    place.mkdir()
    touches = ("--touches", str(bench.project / "a")) if is_beside else ()
    make = "git init -q .; echo f > f; git add f"
    task = bench.launch(f"{make}; {until(str(bench.root / 'go'))}; echo g > g", "--cwd", str(place), *touches)
    wait_until((place / ".git" / "index").exists, "the repository")
    if is_beside:
        wait_until(lambda: first_look(bench, task), "the first snapshot")
        tree.write("b", "another\n")
        found = compared(bench, task)
        assert (hows(bench, found), found["unattributed_in_all"]) == ({"b": "changed"}, 1)
        assert "repository: appeared" in found["uncompared"]
        return
    (bench.root / "go").touch()
    bench.run("wait", task)
    wait_until(lambda: os.path.exists(bench.files(task).after), "the last snapshot")
    assert bench.json("effects", task)["unattributed"] is None


def test_compared_effects_are_listed_without_an_author(bench: Bench, tree: Worktree) -> None:
    """With `--observe compare`, the effects list changed files by kind, and say that the author is not known."""
    tree.settle_index()
    task = begun(bench, "echo more >> a; rm src/deep/c.py; touch made; cp b x; mv x b", "--observe", "compare")
    found = compared(bench, task)
    assert hows(bench, found) == {"a": "changed", "b": "rewritten", "src/deep/c.py": "gone", "made": "appeared"}
    names = {
        key: [path.rpartition("/")[2] for path in found[key]] for key in ("changed", "gone", "created", "rewritten")
    }
    assert names == {"changed": ["a", "c.py"], "gone": ["c.py"], "created": ["made"], "rewritten": ["b"]}
    assert (found["level"], found["windows"]) == ("compared", [])
    assert "1 file changed; 1 file removed; 1 file created; 1 file written, same content" in found["summary"]
    assert "nobody knows who did it" in found["summary"]


@pytest.mark.parametrize(
    ("text", "became"),
    [
        ("git stash -q; sleep 0.5; git stash pop -q", {"b": "rewritten"}),
        ("mv a x; sleep 0.5; mv x a", {"a": "rewritten"}),
        ("echo x > made; sleep 0.5; rm made", {}),
        ("echo x > made; sleep 0.5", {"made": "appeared"}),
        ("echo more >> a; sleep 0.5", {"a": "changed"}),
    ],
)
def test_first_snapshot_of_a_compared_task_is_from_before_its_command(
    bench: Bench, tree: Worktree, text: str, became: dict[str, str]
) -> None:
    """With `--observe compare`, the command begins after a quick first snapshot, so all its changes are found."""
    tree.write("b", "mine\n")
    task = bench.launch(text, "--observe", "compare", env=ENVIRON)
    found = compared(bench, task)
    assert (found["level"], found["uncompared"], hows(bench, found)) == ("compared", [], became)


@pytest.mark.parametrize("how", ["watch", "compare"])
def test_files_in_a_submodule_are_reported_as_not_compared(bench: Bench, tree: Worktree, how: str) -> None:
    """The effects say that files of a submodule were not compared, because a snapshot does not read them."""
    inner = Worktree(bench.root / "inner")
    inner.commit(c="c\n")
    tree.git("submodule", "--quiet", "add", str(inner.path), "module")
    tree.commit()
    found = compared(bench, bench.launch("echo more >> module/c", "--observe", how))
    assert found["summary"].startswith("nothing is known to have changed")
    assert "submodules: the files in them were not read" in found["uncompared"]


@pytest.mark.parametrize("is_bare", [False, True])
def test_compared_effects_report_refs_that_moved(bench: Bench, tree: Worktree, is_bare: bool) -> None:
    """With `--observe compare`, moved branches, tags, notes and other refs are reported, even in a bare repository."""
    place = bench.root / "bare.git" if is_bare else bench.project
    if is_bare:
        tree.git("clone", "--quiet", "--bare", ".", str(place))
    tree.write("a", "to be stashed\n")
    text = "git branch made; git tag v1; git notes add -m x; git update-ref refs/mine/x HEAD; git stash -q"
    task = bench.launch(text, "--observe", "compare", "--cwd", str(place), env=ENVIRON)
    bench.run("wait", task)
    summary = bench.json("effects", task)["summary"]
    assert "branch made, ref mine/x, notes commits, tag v1 moved while it ran" in summary
    assert ("the stash went from 0 to 1" in summary) is not is_bare


@pytest.mark.usefixtures("tree")
def test_run_wait_includes_the_comparison(bench: Bench) -> None:
    """With `--observe compare`, `run --wait` answers when the comparison is complete, and prints its result."""
    shown = bench.json("run", "--wait", "20s", "--observe", "compare", "sleep 0.2; echo more >> a")
    assert (shown["effects"]["level"], shown["effects"]["changed"]) == ("compared", [str(bench.project / "a")])


@can_observe
def test_first_snapshot_is_abandoned_when_the_command_ends_earlier(bench: Bench, tree: Worktree) -> None:
    """If a command ends before the first snapshot is complete, the process that takes the snapshot is ended."""
    for number in range(6000):
        tree.write(f"many/f{number % 60}/{number}")
    tree.commit()
    task = bench.launch("sleep 0.06")
    bench.run("wait", task)
    wait_until(lambda: bench.find_keeper(task) is None, "the keeper's end")
    assert bench.json("effects", task)["level"] == "observed"
    wait_until(lambda: not any(bench.files(task).record in open_files(pid) for pid in processes_named(KEEPER_NAME)))


@pytest.mark.usefixtures("tree")
def test_compared_task_has_no_overlap(bench: Bench) -> None:
    """With `--observe compare`, no notice reports an overlap, because another task may have made the changes."""
    begun_task = begun(bench, "true", "--observe", "compare", "--session", "s-1")
    other = bench.launch("echo other >> a", "--session", "s-1")
    bench.run("wait", other, "--no-ack")
    assert compared(bench, begun_task)["changed"] == [str(bench.project / "a")]
    notices = bench.json("inbox", "--session", "s-1")["notices"]
    assert [notice["overlap"] for notice in notices] == [[]] * len(notices)


@pytest.mark.usefixtures("tree")
def test_comparison_is_missing_when_the_keeper_died(bench: Bench) -> None:
    """With `--observe compare`, effects are unknown if the keeper died, and no file of a snapshot is left."""
    task = begun(bench, "echo more >> a", "--observe", "compare")
    kill(bench.keeper(task))
    (bench.root / "go").touch()
    bench.run("wait", task)
    found = bench.json("effects", task)
    assert (found["unattributed"], found["level"]) == (None, "unknown")
    assert not {"first", "compared", "after"} & set(os.listdir(bench.files(task).path))


@pytest.mark.usefixtures("tree")
def test_process_that_takes_snapshots_is_not_left_running(bench: Bench) -> None:
    """The fork of the keeper that takes a snapshot is not listed as a process that the task left running."""
    for number in range(3000):
        (bench.project / f"f{number}").touch()
    Worktree(bench.project, new=False).commit()
    task = bench.launch("true", "--observe", "compare")
    bench.run("wait", task)
    assert bench.show(task)["left_running"] == []


# --- what a launch declares ----------------------------------------------------------------------


def test_declared_paths_are_reported_before_the_task_touches_them(bench: Bench, tree: Worktree) -> None:
    """Paths given with `--touches` are in the hand-off, and in the effects under `declared`. `retry` keeps them."""
    begin(bench, "s-1")
    task = bench.launch(until("go"), "--session", "s-1", "--touches", "a", "--touches", "src/../b", "--observe", "off")
    touches = bench.json("effects", task)["declared"]["touches"]
    assert [each["what"] for each in touches if each["by"] == "--touches"] == [
        str(tree.path / "a"),
        str(tree.path / "b"),
    ]
    assert "touches a, b by its launch" in begin(bench, "s-1", "--source", "compact")["hand_off"]["text"]
    assert "--touches" in bench.ok("effects", task)
    assert bench.run("run", "--touches", "", "true").returncode == 2
    (bench.project / "go").touch()
    bench.run("wait", task)
    again = bench.ok("retry", task)
    assert bench.row(again).launch.touches == (str(tree.path / "a"), str(tree.path / "b"))


@pytest.fixture
def other(bench: Bench) -> Worktree:
    """Make another repository, outside of the project."""
    made = Worktree(bench.root / "other")
    made.commit(x="x\n", y="y\n")
    return made


@can_observe
@pytest.mark.usefixtures("tree")
def test_repository_of_a_declared_path_is_observed_and_compared(bench: Bench, other: Worktree) -> None:
    """In the repository of a `--touches` path, changes by the task and changes by other processes are reported."""
    text = f"cd {other.path}; mv x z; sleep 0.05; mv z x; echo a >> {bench.project}/a; git commit -q --allow-empty -m m"
    bench.env.update(ENVIRON)
    task = begun(bench, text, "--touches", str(other.path / "x"), "--touches", str(other.path / "none"))
    other.write("y", "not the task's\n")
    found = compared(bench, task)
    assert {window["scope"] for window in found["windows"]} == {str(other.path), str(bench.project)}
    assert found["restored"] == [str(other.path / "x")]
    assert [each["path"] for each in found["unattributed"]] == [str(other.path / "y")]
    assert f"branch main of {other.path}" in {each["what"] for each in found["git"]}
    assert found["moved"] is None


@can_observe
def test_commit_by_the_task_does_not_hide_a_commit_in_another_repository(
    bench: Bench, tree: Worktree, other: Worktree
) -> None:
    """A commit by the task, and another process's commit in another repository, are both reported."""
    bench.env.update(ENVIRON)
    text = f"cd {other.path}; echo more >> x; git stash push -q; git commit -q --allow-empty -m m"
    task = begun(bench, text, "--touches", str(other.path))
    tree.git("commit", "-q", "--allow-empty", "-m", "not the task's")
    found = compared(bench, task)
    assert {each["what"] for each in found["git"]} == {
        f"{what} of {other.path}" for what in ("branch main", "index", "stash")
    }
    assert found["moved"].startswith("HEAD moved")
    assert "stash" not in found["moved"]


def test_declared_path_is_compared_when_the_task_runs_outside_of_a_repository(bench: Bench, other: Worktree) -> None:
    """A path given with `--touches` is compared, even if the task's working directory is in no repository."""
    task = begun(bench, f"echo more >> {other.path}/x", "--observe", "compare", "--touches", str(other.path / "x"))
    found = compared(bench, task)
    assert (found["level"], found["changed"]) == ("compared", [str(other.path / "x")])


# --- drift -------------------------------------------------------------------------------


def drifted(bench: Bench) -> Any:
    """Return the drift that the notice of the session's only task reports."""
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
    """After a `git rm`, the drift says that tracked files were added, moved or removed."""
    task = begun(bench, "true", "--session", "s-1")
    compared(bench, task)
    tree.git("rm", "-q", "b")
    assert drifted(bench)["summary"] == "tracked files were added, moved or removed since it ran"


@can_observe
def test_file_changed_and_staged_after_the_task_is_drift(bench: Bench, tree: Worktree) -> None:
    """A file that is changed and staged after the task is drift. Staging the task's own changes is no drift."""
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
    """A change between the task's end and the last snapshot is drift or unknown, and never a change by the task."""
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
    """Drift covers repositories that `--touches` names or the command enters, and says in which one a path is."""
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
    """Of 600 touched files, drift compares 500 one by one, and the rest as tracked files of the repository."""
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
    """After a stash of very many files, drift is known. ORIG_HEAD and similar files of git do not make it unknown."""
    tree.commit(**{f"n{number}": "old\n" for number in range(600)})
    for number in range(600):
        tree.write(f"n{number}", "fix\n")
    compared(bench, begun(bench, "git stash push -q; git stash pop -q", "--session", "s-1"))
    assert drifted(bench)["moved"] is False
    tree.write("a", "another\n")
    assert drifted(bench)["details"] == ["1 tracked file changed since it ran, read by it or not: a"]


def test_touched_files_changed_before_the_snapshot_are_unknown(bench: Bench) -> None:
    """If a caller changes or removes touched files before the keeper reads them, their drift is unknown."""
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
    """A change of the user's git configuration, of its link's target, or of an included file is reported as drift.

    The compared paths are those that git used when the task ran.
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
    """If a user commits the files as the task left them, drift reports the move of HEAD and no changed file."""
    tree.write("a", "dirty\n")
    (bench.project / "b").unlink()
    task = begun(bench, "true", "--session", "s-1")
    compared(bench, task)
    tree.git("rm", "-q", "--cached", "b")
    assert drifted(bench)["moved"] is False
    tree.commit()
    (notice,) = bench.json("inbox", "--session", "s-1")["notices"]
    assert ["HEAD moved 1 commit" in each for each in notice["drift"]["details"]] == [True]


def test_state_directory_inside_the_repository_is_not_compared(bench: Bench, tree: Worktree) -> None:
    """Files of Outlive's state directory inside the repository are not listed as unattributed."""
    bench.env["OUTLIVE_HOME"] = str(bench.project)
    task = begun(bench, "true", "--observe", "compare")
    bench.ok("run", "--wait", "20s", "true")
    tree.write("b", "x\n")
    assert hows(bench, compared(bench, task)) == {"b": "changed"}

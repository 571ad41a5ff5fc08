"""Comparing all files before and after a task finds the changes, but not the process that made them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from outlive.linux.processes import KEEPER_NAME
from tests.comparison_steps import begun, can_observe, compared, first_look, hows
from tests.git_steps import ENVIRON, Worktree
from tests.session_steps import begin, until
from tests.support import kill, open_files, processes_named, wait_until

if TYPE_CHECKING:
    from tests.support import Bench


@can_observe
def test_changes_by_another_process_are_unattributed(bench: Bench, tree: Worktree) -> None:
    """A file that another process changes while the task runs is listed under `unattributed`.

    The task's changes are not.
    """
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
    """A caller's changes after the reported ending are no effects of the task, even before the last snapshot."""
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
    """If another process commits while the task runs, the notice of the task says that HEAD moved."""
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
    """While the keeper compares files, or if it ended before that, a notice says that later changes are unknown."""
    begin(bench, "s-1")
    task = begun(bench, "true", "--session", "s-1")
    compared(bench, task)
    (notice,) = bench.json("inbox", "--session", "s-1", "--peek")["notices"]
    assert notice["drift"]["moved"] is False
    os.unlink(bench.files(task).compared)
    with open(bench.files(task).record, "r+b"):  # While the record is not closed, the keeper may still compare.
        (notice,) = bench.json("inbox", "--session", "s-1", "--peek")["notices"]
    assert notice["drift"]["moved"] is None
    assert "still being compared" in notice["drift"]["summary"]
    (notice,) = bench.json("inbox", "--session", "s-1", "--peek")["notices"]
    assert notice["drift"]["moved"] is None
    assert "was not compared" in notice["drift"]["summary"], "the keeper has exited, so no process will compare"


@can_observe
def test_commit_by_the_task_itself_is_no_drift(bench: Bench, tree: Worktree) -> None:
    """A commit by the task is not reported as a later change, even with `--observe compare`.

    With this option, it is not known which process made a change.
    """
    del tree
    for options in ((), ("--observe", "compare")):
        task = begun(bench, "echo more >> b; git commit -q -a -m more", *options)
        compared(bench, task)
        (bench.root / "go").unlink()
        assert bench.json("show", task)["drift"]["moved"] is False


@can_observe
def test_commit_by_another_process_is_reported_when_the_task_changed_the_index(bench: Bench, tree: Worktree) -> None:
    """If a task stages a file and another process commits, the effects have the staging and the commit."""
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
    """If the first snapshot was late, a file that changed before it is found by its times. The delay is reported."""
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
    """If a command ends before the first snapshot, the effects do not say whether other processes changed files."""

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
    """Files in a repository that the task created before the first snapshot are not listed under `unattributed`."""
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
    """With `--observe compare`, the first snapshot is taken before the command begins. So all its changes are found."""
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
    """If a command ends before the first snapshot is complete, the process that takes the snapshot is killed."""
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
    """With `--observe compare`, no notice says that two tasks changed a file. It is not known who changed it."""
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


def test_declared_paths_are_reported_before_the_task_touches_them(bench: Bench, tree: Worktree) -> None:
    """Paths that `--touches` names are in the hand-off and the effects before the task touches them.

    The effects list them under `declared`. `retry` keeps them.
    """
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
    """In the repository of a `--touches` path, changes by the task and by other processes are reported."""
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


def test_state_directory_inside_the_repository_is_not_compared(bench: Bench, tree: Worktree) -> None:
    """Files of Outlive's own state directory in the repository are not listed under `unattributed`."""
    bench.env["OUTLIVE_HOME"] = str(bench.project)
    task = begun(bench, "true", "--observe", "compare")
    bench.ok("run", "--wait", "20s", "true")
    tree.write("b", "x\n")
    assert hows(bench, compared(bench, task)) == {"b": "changed"}

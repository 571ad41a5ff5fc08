"""Tasks and sessions that change the same files at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from outlive import Outlive
from outlive.linux.seccomp import is_known_machine
from tests.effects_steps import paths
from tests.git_steps import Worktree
from tests.session_steps import begin, until
from tests.support import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench

pytestmark = pytest.mark.skipif(not is_known_machine(), reason="the calls of this machine are not known")


@pytest.mark.usefixtures("repo")
def test_notices_name_two_tasks_that_changed_one_file_at_the_same_time(bench: Bench) -> None:
    """If two tasks changed one file at the same time, the notice of each names the other task and the file.

    It also has the time span. The notices do not name a task that ran later.
    """
    one = bench.launch(f"echo one >> other.py; {until('go')}", "--session", "s-1")
    two = bench.launch(f"echo two >> other.py; echo two > two.py; {until('go')}", "--session", "s-1")
    wait_until(lambda: bench.json("effects", two)["created"], "both tasks to write")
    (bench.project / "go").touch()
    bench.run("wait", one, two, "--no-ack")
    late = bench.launch("echo late >> other.py")
    bench.run("wait", late)
    told = {notice["task"]["id"]: notice for notice in bench.json("inbox", "--session", "s-1")["notices"]}
    (overlap,) = told[one]["overlap"]
    assert (overlap["task"], overlap["paths"]) == (two, paths(bench, "other.py"))
    assert f"overlap: task {one} changed other.py too while both ran, from " in told[two]["text"]


@pytest.mark.usefixtures("repo")
def test_restored_files_are_no_overlap_with_a_task_that_began_later(bench: Bench) -> None:
    """If a task restored a file before a second task began, the file is not reported as changed by both.

    The other files that the two tasks changed are reported.
    """
    one = bench.launch(f"git stash push -q; git stash pop -q; echo one >> other.py; {until('go')}", "--session", "s-1")
    wait_until(lambda: bench.json("effects", one)["changed"] == paths(bench, "other.py"), "the files to be restored")
    two = bench.launch("git stash push -q -- a.py; git stash pop -q; echo two >> other.py", "--session", "s-2")
    bench.run("wait", two, "--no-ack")
    (bench.project / "go").touch()
    bench.run("wait", one, "--no-ack")
    for session, other in (("s-1", two), ("s-2", one)):
        (ending,) = [each for each in bench.json("inbox", "--session", session)["notices"] if each["kind"] == "ended"]
        assert [(each["task"], each["paths"]) for each in ending["overlap"]] == [(other, paths(bench, "other.py"))]


def told_while_running(bench: Bench, session: str) -> list[dict[str, Any]]:
    """Wait until a session has notices, and return them."""
    wait_until(lambda: bench.json("inbox", "--session", session, "--peek")["notices"], "the notice of the overlap")
    return list(bench.json("inbox", "--session", session)["notices"])


def test_two_sessions_are_notified_when_their_tasks_write_in_one_tree(bench: Bench, repo: Path) -> None:
    """If two tasks write in one worktree, each of their two sessions gets one notice when this begins.

    The notice of the task's ending then names the files.
    """
    one = bench.launch(f"echo 1 >> a.py; echo 1 >> other.py; {until('go')}", "--session", "s-1")
    wait_until(lambda: bench.json("effects", one)["changed"], "the first task to write")
    assert bench.json("inbox", "--session", "s-1", "--peek")["notices"] == []
    two = bench.launch(f"echo 2 >> other.py; {until('go')}", "--session", "s-2")
    for session, own, other in (("s-1", one, two), ("s-2", two, one)):
        (notice,) = told_while_running(bench, session)
        assert (notice["kind"], notice["task"]["id"], notice["task"]["state"]) == ("overlap", own, "running")
        assert [each["task"] for each in notice["overlap"]] == [other]
        assert f"{own} WRITES IN THE SAME TREE as {other}" in notice["text"]
        assert bench.json("inbox", "--session", session)["notices"] == []
    (repo / "go").touch()
    bench.run("wait", one, two, "--no-ack")
    (ending,) = bench.json("inbox", "--session", "s-1")["notices"]
    assert (ending["kind"], ending["overlap"][0]["paths"]) == ("ended", paths(bench, "other.py"))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_tasks_in_and_around_a_nested_repository_overlap_when_both_write_there(
    bench: Bench, repo: Path, order: tuple[int, int]
) -> None:
    """Two tasks overlap if both write into the nested repository, wherever they were launched.

    A task that writes only around it does not overlap with a task inside it.
    """
    inner = Worktree(repo / "inner")
    inner.commit(x="old\n")

    def writer(name: str, session: str, cwd: Path) -> str:
        task = bench.launch(f"echo x >> {name}; {until(f'{repo}/go')}", "--session", session, "--cwd", str(cwd))
        wait_until(lambda: bench.json("effects", task)["changed"], "the write of the task")
        return task

    other = writer("other.py", "s-0", repo)
    places = (("inner/x", "s-1", repo), ("x", "s-2", inner.path))
    tasks = {places[which][1]: writer(*places[which]) for which in order}
    for session, own in tasks.items():
        notices = told_while_running(bench, session)
        found = {each["task"]: each["paths"] for notice in notices for each in notice["overlap"]}
        assert {notice["task"]["id"] for notice in notices} == {own}
        (beside,) = set(tasks.values()) - {own}
        assert found[beside] == paths(bench, "inner/x")
        assert (other in found) == (session == "s-1")
    (repo / "go").touch()
    bench.run("wait", other, *tasks.values(), "--no-ack")


def test_session_gets_one_notice_when_two_of_its_tasks_overlap(bench: Bench, repo: Path) -> None:
    """If two tasks of one session change existing files, the session gets one notice about this.

    The notice does not name tasks that only create new files.
    """
    launch = [f"echo {n} >> {name}; {until('go')}" for n, name in enumerate(("a.py", "b.py", "new1", "new2"))]
    tasks = [bench.launch(text, "--session", "s-1") for text in launch]
    wait_until(lambda: bench.json("inbox", "--session", "s-1", "--peek")["notices"], "the notice of the overlap")
    wait_until((repo / "new2").exists, "the last task to write")
    (notice,) = bench.json("inbox", "--session", "s-1", "--peek")["notices"]
    assert notice["task"]["id"] in tasks[:2]
    assert "changed other files of this tree while both ran, from " in notice["text"]
    assert "\n  running since " in notice["text"]
    (repo / "go").touch()
    bench.run("wait", *tasks, "--no-ack")
    found = bench.json("inbox", "--session", "s-1")["notices"]
    assert sorted(each["kind"] for each in found) == ["ended"] * 4
    assert sum(len(each["covers"]) for each in found) == 1


def test_overlap_names_files_that_the_session_edited_itself(bench: Bench, repo: Path) -> None:
    """If a session edited a file that its running task also changed, the task's notice names the file."""
    assert bench.json("session", "edited", "--session", "s-1", "a.py") == {"edited": paths(bench, "a.py")}
    task = bench.launch(f"echo 1 >> a.py; echo 1 >> b.py; {until('go')}", "--session", "s-1")
    wait_until(lambda: len(bench.json("effects", task)["changed"]) == 2, "the task to write")
    bench.run("session", "edited", "--session", "s-1", "b.py", "dir/c.py")
    (repo / "go").touch()
    bench.run("wait", task, "--no-ack")
    (ending,) = bench.json("inbox", "--session", "s-1")["notices"]
    (overlap,) = ending["overlap"]
    assert (overlap["task"], overlap["session"], overlap["paths"]) == (None, "s-1", paths(bench, "b.py"))
    assert "session s-1 edited b.py itself" in ending["text"]


def test_overlap_covers_edits_during_an_earlier_attempt(bench: Bench, repo: Path) -> None:
    """If another session edited a file during a task's first attempt, the notice of the ending names the edit."""
    text = f"echo 1 >> a.py; [ -e go ] || {{ {until('go')}; exit 1; }}"
    task = bench.launch(text, "--retries", "1", "--session", "s-1")
    wait_until(lambda: bench.json("effects", task)["changed"], "the task to write")
    bench.ok("session", "edited", "--session", "s-2", "a.py")
    (repo / "go").touch()
    wait_until(lambda: bench.show(task)["state"] == "succeeded", "the second try")
    (ending,) = [each for each in bench.json("inbox", "--session", "s-1")["notices"] if each["kind"] == "ended"]
    assert [(each["session"], each["paths"]) for each in ending["overlap"]] == [("s-2", paths(bench, "a.py"))]


def test_overlap_covers_tasks_of_two_projects(bench: Bench, repo: Path, tmp_path: Path) -> None:
    """If a task of another project declares this project and changes the same file, the notice names this task."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    begin(bench, "s-1")
    here = bench.launch(f"echo 1 > a.py; {until('go')}", "--session", "s-1")
    wait_until(lambda: bench.json("effects", here)["changed"], "the first write")
    text = f"echo 2 > {repo}/a.py; {until(f'{repo}/go')}"
    there = bench.launch(text, "--cwd", str(elsewhere), "--touches", str(repo))
    wait_until(lambda: bench.json("effects", there)["changed"], "the second write")
    (repo / "go").touch()
    bench.run("wait", here, there, "--no-ack")
    (ending,) = [each for each in bench.json("inbox", "--session", "s-1")["notices"] if each["kind"] == "ended"]
    assert [(each["task"], each["paths"]) for each in ending["overlap"]] == [(there, paths(bench, "a.py"))]


def test_session_edited_requires_paths(bench: Bench) -> None:
    """`session` exits with 2 if `edited` has no path or an empty one, or if `begin` gets an extra argument."""
    for words in (
        ("edited", "--session", "s-1"),
        ("begin", "x", "--session", "s-1"),
        ("edited", "--session", "s-1", ""),
    ):
        assert bench.run("session", *words).returncode == 2, words


def test_overlap_covers_a_long_task_that_began_before_many_short_ones(bench: Bench, repo: Path) -> None:
    """The notice names a long task that changed the same file, even if sixty short tasks began after it."""
    long = bench.launch(f"echo 1 >> a.py; {until('go')}")
    wait_until(lambda: bench.json("effects", long)["changed"], "the write of the task")
    client = Outlive(home=str(bench.state))
    short = [client.run(["true"], cwd=bench.project, observe="off") for _ in range(60)]
    client.wait(*short)
    late = bench.launch("echo 2 >> a.py", "--session", "s-1")
    bench.run("wait", late, "--no-ack")
    notices = bench.json("inbox", "--session", "s-1")["notices"]
    assert {each["task"] for notice in notices for each in notice["overlap"]} == {long}
    (repo / "go").touch()
    bench.run("wait", long)

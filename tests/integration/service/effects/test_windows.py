"""Changes that a task has not restored yet, or that it restored later. Such a change is called a window."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from outlive.linux.seccomp import is_known_machine
from tests.effects_steps import NAMES, git, paths, touched, window_on
from tests.git_steps import Worktree
from tests.session_steps import begin, until
from tests.support import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench

pytestmark = pytest.mark.skipif(not is_known_machine(), reason="the calls of this machine are not known")


def moment(text: str) -> float:
    """Return a time from a JSON document in seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.usefixtures("repo")
def test_stash_is_a_window_until_the_pop(bench: Bench) -> None:
    """Stashed files are listed as changed during the stash, and as restored after it.

    The times are exact to 0.2 seconds.
    """
    begin(bench, "s-2")
    text = f"date +%s.%N; git stash push -q; date +%s.%N; {until('go')}; date +%s.%N; git stash pop -q; date +%s.%N"
    task = bench.launch(text, "--session", "s-1")
    wait_until(lambda: bench.ok("output", task).count("\n") >= 1, "the stash")
    window = window_on(bench, task, *NAMES)
    assert (window["paths"], window["closed_at"], window["restored"]) == (list(NAMES), None, None)
    assert window["by"] == "git stash push -q"
    warning = f"task {task} has changed a.py, b.py, dir/c.py and not restored them"
    assert warning in bench.ok("gate", "--session", "s-2")
    handed = begin(bench, "s-2", "--source", "compact")["hand_off"]
    assert warning in handed["text"]
    assert [each["task"] for each in handed["open_windows"]] == [task]
    (bench.project / "go").touch()
    bench.run("wait", task)
    effects = bench.show(task)["effects"]
    assert (effects["level"], effects["paths_restored"], effects["changed"]) == ("observed", 3, [])
    (window,) = effects["windows"]
    before, pushed, popping, after = map(float, bench.ok("output", task).splitlines())
    assert before - 0.2 <= moment(window["opened_at"]) <= pushed + 0.2
    assert popping - 0.2 <= moment(window["closed_at"]) <= after + 0.2
    assert (window["restored"], window["scope"]) == (True, str(bench.project))
    assert {"index", "stash"} <= {each["what"] for each in bench.json("effects", task)["git"]}
    assert "3 files changed and restored" in effects["summary"]


@pytest.mark.usefixtures("repo")
def test_open_window_is_at_the_top_of_the_notice(bench: Bench) -> None:
    """If a task ends before its `git stash pop`, its notice begins with the files that are not restored."""
    task = bench.launch("git stash push -q; exit 9", "--session", "s-1")
    bench.run("wait", task)
    (notice,) = bench.json("inbox", "--session", "s-1")["notices"]
    first = notice["text"].splitlines()[1]
    assert "DID NOT RESTORE a.py, b.py, dir/c.py (changed for " in first
    assert notice["task"]["effects"]["windows"][0]["closed_at"] is None


@pytest.mark.usefixtures("repo")
def test_head_left_on_another_branch_is_at_the_top_of_the_notice(bench: Bench) -> None:
    """If a task leaves HEAD on a new branch, its notice begins with this, although every file has its old content."""
    task = bench.launch("git checkout -q -b elsewhere; exit 9", "--session", "s-1")
    bench.run("wait", task, "--no-ack")
    (notice,) = bench.json("inbox", "--session", "s-1", "--peek")["notices"]
    assert "DID NOT RESTORE HEAD (changed for " in notice["text"].splitlines()[1]
    git(bench, "checkout", "-q", "-")
    (notice,) = bench.json("inbox", "--session", "s-1")["notices"]
    assert "NOT RESTORE" not in notice["text"]


def test_head_left_in_another_repository_is_named_with_that_repository(bench: Bench, repo: Path) -> None:
    """If a task leaves the HEAD of another repository on a new branch, its notice names this repository."""
    git(bench, "clone", "-q", str(repo), str(repo.parent / "lib"))
    text = f"echo new > a.py; cd {repo.parent}/lib && git checkout -q -b elsewhere && echo new > a.py; exit 9"
    task = bench.launch(text, "--session", "s-1")
    bench.run("wait", task)
    (notice,) = bench.json("inbox", "--session", "s-1")["notices"]
    assert f"DID NOT RESTORE a.py, HEAD of {repo.parent}"[:60] in notice["text"].splitlines()[1]


def test_notice_says_that_left_files_were_put_back_since(bench: Bench, repo: Path) -> None:
    """If a user restores the files that a failed task left changed, the task's notice says so.

    No output says that the files are still changed.
    """
    task = bench.launch("git stash push -q; exit 9", "--session", "s-1")
    bench.run("wait", task, "--no-ack")
    assert bench.ok("effects", task, "--open").startswith("window of 3 files, open for")
    (repo / "a.py").write_text("mine\n")
    (notice,) = bench.json("inbox", "--session", "s-1", "--peek")["notices"]
    first = notice["text"].splitlines()[1]
    assert "DID NOT RESTORE b.py, dir/c.py (changed for " in first, "a.py was changed by the user"
    git(bench, "checkout", "-q", "a.py")
    git(bench, "stash", "pop", "-q")
    (notice,) = bench.json("inbox", "--session", "s-1")["notices"]
    first = notice["text"].splitlines()[1]
    told = "DID NOT RESTORE a.py, b.py, dir/c.py (changed by git stash push -q; restored or changed since)"
    assert told in first
    effects = notice["task"]["effects"]
    assert effects["summary"] == "left 3 files changed (git stash push -q); git: index, stash"
    assert effects["windows"][0]["left"] is True
    for surface in (first, effects["summary"], bench.ok("effects", task), bench.ok("show", task)):
        assert " now" not in surface, surface
    assert bench.ok("effects", task, "--open") == "no window is open now"


@pytest.mark.usefixtures("repo")
def test_open_windows_are_unknown_when_the_task_is_not_observed(bench: Bench) -> None:
    """With `--observe compare` or `off`, `effects --open` says that it does not know about unrestored files."""
    for how in ("compare", "off"):
        task = bench.launch(f"git stash push -q; {until('go')}; git stash pop -q", "--observe", how)
        answer = bench.ok("effects", task, "--open")
        assert answer.startswith("not known: its changes are not observed"), how
        assert bench.json("effects", task, "--open") == {"level": "unknown", "windows": []}
        (bench.project / "go").touch()
        bench.run("wait", task)
        (bench.project / "go").unlink()


def test_restored_window_stays_closed_when_another_process_stashes_the_files(bench: Bench, repo: Path) -> None:
    """After a user has restored the files of a task, a later stash of these files is not the task's change."""
    task = bench.launch("git stash push -q; exit 9", "--session", "s-1")
    bench.run("wait", task, "--no-ack")
    assert not bench.json("guard", "a.py")["clear"]
    git(bench, "stash", "pop", "-q")
    git(bench, "stash", "push", "-q")
    assert (repo / "a.py").read_text() == "old\n"
    assert bench.json("guard", "a.py")["clear"]
    assert bench.json("effects", task, "--open")["windows"] == []
    (notice,) = bench.json("inbox", "--session", "s-1")["notices"]
    assert "restored or changed since" in notice["text"].splitlines()[1]


@pytest.mark.usefixtures("repo")
def test_show_names_the_files_of_each_window(bench: Bench) -> None:
    """`show` prints the files that each command of the task changed for a time.

    The notice refers to `outlive effects`. For a task that touched no file, neither is printed.
    """
    stashed = bench.launch("git stash push -q; git stash pop -q", "--session", "s-1")
    silent = bench.launch("cat a.py", "--session", "s-1")
    bench.run("wait", stashed, silent, "--no-ack")
    (line,) = [line for line in bench.ok("show", stashed).splitlines() if line.startswith("window ")]
    assert line.startswith("window    of 3 files, ")
    assert line.endswith(", all restored, by git stash push -q: a.py, b.py, dir/c.py")
    assert "\nwindow " not in bench.ok("show", silent)
    text = bench.ok("inbox", "--session", "s-1")
    assert f", outlive effects {stashed}\n" in text
    assert f"outlive effects {silent}" not in text


def test_notice_distinguishes_files_of_one_name_by_their_paths(bench: Bench, repo: Path) -> None:
    """The notice names changed files by their paths in the project, and does not list directories."""
    for name in ("x/y/index.js", "z/y/index.js", "src/other.py"):
        (repo / name).parent.mkdir(parents=True)
        (repo / name).write_text("old\n")
    task = bench.launch("rm -r x z; sed -i s/old/new/ src/other.py; false", "--session", "s-1")
    bench.run("wait", task)
    (notice,) = bench.json("inbox", "--session", "s-1")["notices"]
    assert "DID NOT RESTORE src/other.py, x/y/index.js, z/y/index.js (changed " in notice["text"].splitlines()[1]
    assert "left 3 files changed (rm -r x z); 2 of these removed" in notice["text"]


@pytest.mark.usefixtures("repo")
def test_change_and_restoration_through_one_descriptor_is_a_possible_window(bench: Bench) -> None:
    """If a file is changed and restored through one descriptor, the effects say that it may have been changed.

    Write calls are not observed, so this covers the whole time between open and close.
    """
    program = """
import time
with open("other.py", "r+") as file:
    file.write("new"); file.flush(); print(time.time(), flush=True); time.sleep(0.3)
    file.seek(0); file.write("old"); file.flush(); print(time.time())
open("a.py", "r+").close()
"""
    (bench.project / "program.py").write_text(program)
    task = bench.launch(f"{sys.executable} -B program.py")
    bench.run("wait", task)
    found = wait_until(lambda: (seen := bench.json("effects", task))["possible_windows"] and seen, "the last snapshot")
    (window,) = found["possible_windows"]
    damaged, repaired = map(float, bench.ok("output", task).split())
    assert window["paths"] == ["other.py"]
    assert damaged - 0.2 <= moment(window["opened_at"]) <= damaged
    assert abs(moment(window["closed_at"]) - repaired) < 0.2
    assert (found["windows"], found["changed"], found["rewritten"]) == ([], [], paths(bench, "other.py"))
    assert "1 file being written for a while, the same before and after" in found["summary"]
    assert "being written, the same before and after: from" in bench.ok("effects", task)


def test_open_windows_are_unknown_outside_of_a_repository(bench: Bench, lasting: Path) -> None:
    """Without a repository, `effects --open` does not know which files are restored. Touched files are only counted.

    Outside of a repository, the contents of files are not compared.
    """
    (lasting / "f").write_text("x\n")
    task = bench.launch(f"mv f away; echo done; {until(f'{bench.root}/go')}", "--cwd", str(lasting))
    wait_until(lambda: bench.ok("output", task).endswith("done"), "the first move")
    # The keeper records a change shortly after it has answered the call.
    wait_until(lambda: bench.ok("effects", task, "--open").startswith("not known: "), "the journal")
    (bench.root / "go").touch()
    bench.run("wait", task)
    assert "2 files outside of any repository" in bench.ok("effects", task)
    assert bench.ok("effects", bench.launch("true"), "--open") == "no window is open now"


def test_effects_say_that_files_in_a_temporary_directory_are_not_reported(bench: Bench, lasting: Path) -> None:
    """For a task in /tmp without a repository, the effects say that files below /tmp are not reported.

    Otherwise the task would look like one that changed no file.
    """
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        task = bench.launch("echo x > f", "--cwd", place)
        bench.run("wait", task)
    assert "observed: files below /tmp are not reported outside of a repository" in bench.ok("effects", task)
    elsewhere = bench.launch("true", "--cwd", str(lasting))
    bench.run("wait", elsewhere)
    assert bench.ok("effects", elsewhere).startswith("observed: no effects were observed")


@pytest.mark.usefixtures("repo")
@pytest.mark.parametrize("program", ["/nonexistent/prettier", "a.py", "dir", "a.py/prettier"])
def test_failed_exec_does_not_change_the_command_of_a_window(bench: Bench, program: str) -> None:
    """After a failed exec, a write is listed with the program that called exec and continues to run."""
    script = "import os, sys\ntry:\n  os.execv(sys.argv[1], ['prettier', '--write', '.'])\nexcept OSError:\n  pass\n"
    (bench.root / "write.py").write_text(script + "open('other.py', 'w').write('x')\n")
    (window,) = touched(bench, f"exec {sys.executable} {bench.root}/write.py {program}")["windows"]
    assert "write.py" in window["by"]
    assert "--write" not in window["by"]


def test_second_attempt_keeps_the_window_of_the_first_in_another_repository(bench: Bench, repo: Path) -> None:
    """The effects of a second attempt also list files that the first attempt stashed and did not restore.

    The files are in a repository that the text of the command does not name.
    """
    again = bench.root / "again"
    text = f"[ -e {again} ] && exit 0; touch {again}; cd $THERE; git stash push -q; exit 1"
    bench.env["THERE"] = str(repo)
    task = bench.launch(text, "--retries", "1", cwd=bench.root)
    bench.run("wait", task)
    (window,) = bench.json("effects", task)["windows"]
    assert (window["scope"], window["closed_at"]) == (str(repo), None)


@pytest.mark.usefixtures("repo")
def test_hand_off_warns_of_a_stash_that_the_command_text_declares(bench: Bench) -> None:
    """If the text of a running command has a `git stash`, the hand-off warns of it before it is executed."""
    task = bench.launch(f"{until('go')}; git stash push -q; sleep 0.1; git stash pop -q", "--session", "s-1")
    handed = begin(bench, "s-1", "--source", "compact")["hand_off"]
    assert handed["open_windows"] == []
    assert f"{task} running for" in handed["text"]
    assert "by its text takes files away for a while" in handed["text"]
    declared = bench.json("effects", task)["declared"]
    assert (declared["opens_window"], {"git"} <= {touch["kind"] for touch in declared["touches"]}) == (True, True)
    (bench.project / "go").touch()
    bench.run("wait", task)


@pytest.mark.usefixtures("repo")
def test_hand_off_warns_of_declared_effects_of_other_sessions(bench: Bench) -> None:
    """The hand-off warns of files that tasks of other sessions in the project, running or ended, may change."""
    begin(bench, "s-1", "--pid", str(os.getpid()))
    text = f"{until('go')}; git stash push -q; git stash pop -q"
    task = bench.launch(text, "--session", "s-1")
    declares = bench.launch(until("go"), "--session", "s-1", "--touches", "a.py")
    bench.launch(until("go"), "--session", "s-1")
    beside = begin(bench, "s-2")["hand_off"]
    assert (beside["running"], beside["elsewhere"]) == ([], 3)
    _, warning, touching, _, _ = beside["text"].splitlines()[1:]
    assert warning.startswith(f"  {task} running for")
    assert "by its text takes files away for a while" in warning
    assert touching.startswith(f"  {declares} running for")
    assert "touches a.py by its launch" in touching
    bench.ok("session", "end", "--session", "s-1")
    later = begin(bench, "s-3")["hand_off"]
    assert len(later["running"]) == 3
    assert f"{task} (of an earlier session) running for" in later["text"]
    assert "by its text takes files away for a while" in later["text"]
    (bench.project / "go").touch()
    bench.run("wait", task, declares)


@pytest.mark.usefixtures("repo")
def test_hand_off_reports_what_ended_tasks_touched(bench: Bench) -> None:
    """The hand-off names the files that ended tasks restored or left changed.

    It takes the place of the notices of these tasks.
    """
    begin(bench, "s-1")
    tasks = [bench.launch(text, "--session", "s-1") for text in ("git stash push -q; git stash pop -q", "cat a.py")]
    bench.run("wait", *tasks, "--no-ack")
    lines = begin(bench, "s-1", "--source", "compact")["hand_off"]["text"].splitlines()
    told = {task: next(line for line in lines if line.strip().startswith(task)) for task in tasks}
    assert "; observed: 3 files changed and restored, window " in told[tasks[0]]
    assert "observed" not in told[tasks[1]], "a task that only read a file has a text about its effects"
    assert bench.json("inbox", "--session", "s-1")["notices"] == []
    texts = ("git stash push -q; git stash pop -q", *["true"] * 11)
    many = [bench.launch(text, "--session", "s-1") for text in texts]
    bench.run("wait", *many, "--no-ack")
    lines = begin(bench, "s-1", "--source", "compact")["hand_off"]["text"].splitlines()
    (line,) = [line for line in lines if line.strip().startswith(many[0])]
    assert re.search(r"window [0-9.]+m?s(;|$)", line), line


def test_hand_off_counts_open_windows_that_do_not_fit(bench: Bench, repo: Path) -> None:
    """The hand-off names three changes that are not restored, and says how many more there are."""
    tasks = [bench.launch(f"echo away > {name}; {until('go')}") for name in (*NAMES, "other.py")]
    for task, name in zip(tasks, (*NAMES, "other.py"), strict=True):
        window_on(bench, task, name)
    handed = begin(bench, "s-1")["hand_off"]
    assert len(handed["open_windows"]) == 4
    assert handed["text"].count(" and not restored ") == 3
    assert "and 1 more changed and not restored: outlive gate" in handed["text"]
    assert "4 more tasks of others run in this project" in handed["text"]
    (repo / "go").touch()
    bench.run("wait", *tasks)


def test_repository_moved_away_is_a_window(bench: Bench) -> None:
    """If a task moves a whole repository away, its path counts as changed until the task moves it back."""
    tree = Worktree(bench.project / "tree")
    tree.commit(x="old\n")
    task = bench.launch(f"cd ..; mv tree away; {until('go')}; mv away tree", "--cwd", str(tree.path))
    (window,) = wait_until(lambda: bench.json("effects", task, "--open")["windows"], "the move")
    assert (window["scope"], window["paths"]) == (str(tree.path), [str(tree.path)])
    assert not bench.json("guard", "tree/x")["clear"]
    (bench.project / "go").touch()
    bench.run("wait", task)
    found = bench.json("effects", task)
    assert (found["level"], found["restored"], found["changed"]) == ("observed", [str(tree.path)], [])


def test_window_left_by_an_earlier_attempt_is_in_the_notice(bench: Bench, repo: Path) -> None:
    """If the first attempt left files stashed, the notice names them, even if the second attempt succeeds."""
    begin(bench, "s-1")
    text = "[ -e .git/second ] && exit; touch .git/second; git stash push -q; exit 1"
    task = bench.launch(text, "--retries", "1", "--session", "s-1")
    wait_until(lambda: bench.show(task)["state"] == "succeeded", "the second try")
    (notice,) = [each for each in bench.json("inbox", "--session", "s-1")["notices"] if each["kind"] == "ended"]
    assert "DID NOT RESTORE a.py, b.py, dir/c.py (changed " in notice["text"].splitlines()[1]
    (window,) = bench.json("effects", task, "--open")["windows"]
    assert (window["paths"], window["by"]) == (list(NAMES), "git stash push -q")
    assert (repo / "a.py").read_text() == "old\n"
    bench.ok("retry", task)
    bench.run("wait", task)
    assert bench.json("effects", task)["windows"] == []

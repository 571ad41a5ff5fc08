"""Files that ended tasks left changed, which the ledger records when the task ends.

A hook that needs these files reads them from the ledger, and need not evaluate the task's recorded changes again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from outlive.linux.seccomp import is_known_machine
from tests.git_steps import ENVIRON, Worktree
from tests.hook_steps import SESSION
from tests.session_steps import until
from tests.support import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench

pytestmark = [
    pytest.mark.usefixtures("repo"),
    pytest.mark.skipif(not is_known_machine(), reason="the calls of this machine are not known"),
]
HOUR_US = 3600 * 1_000_000


@pytest.fixture
def repo(bench: Bench) -> Path:
    """Make a repository with four committed files."""
    bench.env.update({name: each for name, each in ENVIRON.items() if name.startswith("GIT_")})
    Worktree(bench.project).commit(**dict.fromkeys(("a.py", "b.py", "c.py", "other.py"), "one\n"))
    return bench.project


def hook(bench: Bench, tool: str, *, session: str = SESSION, **tool_input: Any) -> tuple[str, set[str]]:
    """Return the output of the hook before a tool, and the modules of Outlive that the hook loaded."""
    cwd = str(tool_input.pop("cwd", bench.project))
    payload = {"session_id": session, "cwd": cwd, "tool_name": tool, "tool_input": tool_input}
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *bench.command("hook", "claude", "PreToolUse")[1:]],
        input=json.dumps(payload),
        env={**bench.env, "OUTLIVE_HOOK_DEADLINE_S": str(PATIENCE_S)},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines() if "outlive." in line}
    return done.stdout, loaded


def failed(bench: Bench, text: str) -> str:
    """Launch a task that fails, and wait until the ledger has the files that the task left changed."""
    task = bench.launch(text)
    bench.run("wait", task, "--no-ack")
    wait_until(lambda: known(bench, task), "the record of the files that the task left changed")
    return task


def known(bench: Bench, task: str) -> bool:
    """Return whether the ledger has the files that a task left changed."""
    return bool(database(bench).execute("SELECT min(left_known) FROM attempt WHERE task = ?", (task,)).get)


def left(bench: Bench, task: str) -> list[str]:
    """Return the paths that the ledger says a task left changed."""
    rows = database(bench).execute("SELECT path FROM left_path WHERE task = ? ORDER BY path", (task,))
    return [os.path.relpath(os.fsdecode(path), bench.project) for (path,) in rows]


def database(bench: Bench) -> apsw.Connection:
    """Open the ledger's file directly, without `SqliteLedger`.

    Closing this connection leaves the write-ahead log as it is.
    """
    connection = apsw.Connection(bench.home.ledger)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    return connection


def forget_journal(bench: Bench, task: str) -> None:
    """Empty the file of a task's recorded changes, so that only the ledger knows them."""
    os.truncate(bench.files(task).effects, 0)


def settle_in_the_past(bench: Bench) -> None:
    """Set the times of the ledger's files to the past, so that hooks trust the results that they have stored."""
    for path in (bench.home.ledger, bench.home.ledger + "-wal", bench.home.path + "/fingerprint"):
        if os.path.exists(path):
            os.utime(path, (1_000_000_000, 1_000_000_000))


def test_hook_loads_no_ledger_for_an_edit_of_another_file_after_a_failure(bench: Bench, repo: Path) -> None:
    """If a failed task left files changed, a hook for an edit of another file does not open the ledger.

    It only loads, in addition, the modules that search the paths of such files.
    """
    bench.ok("list")
    settle_in_the_past(bench)
    hook(bench, "Edit", file_path=str(repo / "other.py"))
    _, quiet = hook(bench, "Edit", file_path=str(repo / "other.py"))
    assert "outlive.ledger.sqlite" not in quiet
    failed(bench, "echo two | tee a.py b.py; exit 1")
    settle_in_the_past(bench)
    hook(bench, "Edit", file_path=str(repo / "other.py"))
    told, loaded = hook(bench, "Edit", file_path=str(repo / "other.py"))
    searching = {"outlive.hooks.guard.known_windows", "outlive.bundle.attempt", "outlive.bundle.record"}
    links = {"outlive.service", "outlive.service.effects", "outlive.service.effects.resolve_links"}
    assert told == ""
    assert loaded - quiet <= searching | links, loaded - quiet


def test_hook_and_guard_find_left_files_when_the_journal_is_empty(bench: Bench, repo: Path) -> None:
    """Hook and guard find the files that a failed task left changed in the ledger alone.

    They name them for an edit, a search, a pattern and `git status`.
    """
    task = failed(bench, "echo two | tee a.py b.py; exit 1")
    forget_journal(bench, task)
    line = f"task {task} has ended and left a.py, b.py changed"
    assert line in hook(bench, "Edit", file_path=str(repo / "a.py"))[0]
    assert line in hook(bench, "Grep", pattern="one")[0]
    assert line in hook(bench, "Bash", command="cat [ab].py", session="s-2")[0]
    assert line in hook(bench, "Bash", command="git status", session="s-3")[0]
    assert hook(bench, "Bash", command="cat other.py", session="s-4")[0] == ""
    assert line in bench.run("guard", "b.py").stdout
    assert [each["task"] for each in bench.json("gate", "--session", "s-1")["open_windows"]] == [task]


def test_hook_warns_a_command_of_left_files_once(bench: Bench, repo: Path) -> None:
    """A hook warns before each command that names a file which a task left changed, or the file's directory.

    Before other commands, it warns once, and once more when further files were left changed.
    """
    task = failed(bench, "echo two > a.py; exit 1")
    settle_in_the_past(bench)
    hook(bench, "Edit", file_path=str(repo / "other.py"))
    assert f"task {task} has ended and left a.py changed" in hook(bench, "Bash", command="git status")[0]
    told, loaded = hook(bench, "Bash", command="make -j4 test")
    assert (told, "outlive.ledger.sqlite" in loaded) == ("", False)
    for command in ("cat a.py", "ls .", f"git -C {repo} status", "cat ./*.py", "GIT_DIR=.git git status"):
        assert f"task {task} has ended and left a.py changed" in hook(bench, "Bash", command=command)[0], command
    elsewhere = bench.root / "elsewhere"
    elsewhere.mkdir()
    told, loaded = hook(bench, "Bash", cwd=elsewhere, command="git status")
    assert (told, "outlive.ledger.sqlite" in loaded) == ("", False)
    failed(bench, "echo two > b.py; exit 1")
    settle_in_the_past(bench)
    hook(bench, "Edit", file_path=str(repo / "other.py"))
    assert "left b.py changed" in hook(bench, "Bash", command="git status")[0]


def test_hook_warns_a_command_once_although_other_tasks_write_to_the_ledger(bench: Bench, repo: Path) -> None:
    """If other tasks write to the ledger, the hook does not repeat a warning.

    The hook's stored list of changed files is outdated then, and is only made again.
    """
    task = failed(bench, "echo two > a.py; exit 1")
    settle_in_the_past(bench)
    hook(bench, "Edit", file_path=str(repo / "other.py"))
    assert f"task {task} has ended and left a.py changed" in hook(bench, "Bash", command="git status")[0]
    bench.run("run", "--wait", "60s", "true")
    settle_in_the_past(bench)
    told, loaded = hook(bench, "Bash", command="git status")
    assert "outlive.ledger.sqlite" in loaded
    assert (told, "outlive.service.effects.guard" in loaded) == ("", False)
    assert f"task {task} has ended and left a.py changed" in hook(bench, "Bash", command="cat a.py")[0]


def test_restored_file_is_removed_from_the_record(bench: Bench, repo: Path) -> None:
    """If a file that a task left changed is restored, the first reader removes it from the ledger's record for good."""
    task = failed(bench, "echo two | tee a.py b.py; exit 1")
    (repo / "a.py").write_text("one\n")
    assert bench.json("guard", "a.py")["clear"]
    assert left(bench, task) == ["b.py"]
    (repo / "a.py").write_text("two\n")
    assert bench.json("guard", "a.py")["clear"], "a later change of the restored file is attributed to the task"
    (repo / "b.py").write_text("three\n")
    assert bench.json("guard", ".")["clear"]
    assert left(bench, task) == []


def test_ending_of_a_task_records_that_the_task_changed_nothing(bench: Bench) -> None:
    """If a task leaves no file changed, its ending records this, so that no reader needs the list of its changes.

    The record and the ending are written in one transaction.
    """
    task = bench.launch("exit 1")
    bench.run("wait", task, "--no-ack")
    assert known(bench, task)
    assert left(bench, task) == []


def test_left_files_are_recorded_when_the_keeper_died(bench: Bench) -> None:
    """If the keeper died, the process that settles the task instead records the files that the task left changed."""
    task = bench.launch(f"echo two > a.py; {until('go')}")
    wait_until(lambda: bench.json("effects", task)["changed"], "the write of the task")
    bench.kill(task, "keeper", "witness", "command")
    bench.ok("list")
    assert known(bench, task)
    assert left(bench, task) == ["a.py"]
    forget_journal(bench, task)
    assert bench.json("guard", "a.py")["holders"][0]["task"] == task


def test_left_files_are_read_from_the_journal_when_the_ledger_lacks_them(bench: Bench) -> None:
    """If the ledger lacks the files that a task left changed, readers find them in the task's recorded changes.

    If an older version settled the task, the first reader records the files. Soon after the ending, it does not,
    because the keeper may be about to do so.
    """
    task = failed(bench, "echo two > a.py; exit 1")
    rows = database(bench)
    rows.execute("DELETE FROM left_path; UPDATE attempt SET left_known = 0")
    assert bench.json("guard", "a.py")["holders"][0]["task"] == task
    assert not known(bench, task), "a reader recorded the files although the keeper may still do it"
    rows.execute("UPDATE attempt SET settled_at = settled_at - ?", (HOUR_US // 2,))
    assert bench.json("guard", "a.py")["holders"][0]["task"] == task
    assert left(bench, task) == ["a.py"]


def test_path_is_recorded_for_the_later_of_two_failed_tasks(bench: Bench) -> None:
    """If two failed tasks left the same file changed, it is recorded only for the later task.

    So repeated failures do not make the record grow.
    """
    first = failed(bench, "echo two | tee a.py b.py; exit 1")
    second = failed(bench, "echo three > a.py; exit 1")
    assert (left(bench, first), left(bench, second)) == (["b.py"], ["a.py"])
    (holder,) = bench.json("guard", "a.py")["holders"]
    assert holder["task"] == second


def test_left_files_are_recorded_when_the_last_process_of_the_task_has_ended(bench: Bench, repo: Path) -> None:
    """The files that a task left changed are recorded only when its last process has ended."""
    task = bench.launch(f"({until('go')}; echo two > b.py) & echo two > a.py; exit 1")
    bench.run("wait", task, "--no-ack")
    assert bench.json("guard", "a.py")["holders"][0]["task"] == task
    assert not known(bench, task)
    (repo / "go").touch()
    wait_until(lambda: known(bench, task), "the record of the files that the task left changed")
    assert left(bench, task) == ["a.py", "b.py"]

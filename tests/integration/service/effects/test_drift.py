"""Changes after a task, or by other processes, are not listed as effects of the task."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from outlive.domain.effects.drift import STILL
from outlive.linux.seccomp import is_known_machine
from tests.effects_steps import NAMES, git, paths, window_on
from tests.session_steps import begin, until
from tests.support import wait_until

if TYPE_CHECKING:
    from tests.support import Bench

pytestmark = pytest.mark.skipif(not is_known_machine(), reason="the calls of this machine are not known")


def test_drift_covers_written_files_outside_of_a_repository(bench: Bench, lasting: Path) -> None:
    """Without a repository, a notice names files that the task wrote and that changed after the task."""
    task = bench.launch("echo x > kept; echo x > changed; echo x > removed", "--cwd", str(lasting))
    bench.run("wait", task)
    assert bench.show(task)["drift"]["moved"] is False
    (lasting / "changed").write_text("other\n")
    (lasting / "removed").unlink()
    (told,) = bench.show(task)["drift"]["details"]
    assert told == f"2 files it touched changed since ({lasting}/changed, {lasting}/removed)"


def test_commits_after_the_task_are_drift(bench: Bench, repo: Path) -> None:
    """If HEAD moves after the task has ended, its notice and the hand-off report this."""
    task = bench.launch("cat other.py", "--session", "s-1")
    bench.run("wait", task, "--no-ack")
    assert bench.json("inbox", "--session", "s-1", "--peek")["notices"][0]["drift"]["moved"] is False
    git(bench, "commit", "-q", "-a", "-m", "second")
    git(bench, "commit", "-q", "--allow-empty", "-m", "third")
    (notice,) = bench.json("inbox", "--session", "s-1")["notices"]
    assert notice["drift"]["moved"] is True
    assert "HEAD moved 2 commits" in notice["drift"]["summary"]
    assert "since then: HEAD moved" in notice["text"]
    assert "; HEAD moved 2 commits since it ran" in begin(bench, "s-1")["hand_off"]["text"]
    shown = bench.show(task)["git"]
    assert (shown["repo"], shown["head_before"]) == (str(repo), shown["head_after"])


@pytest.mark.usefixtures("repo")
def test_git_status_after_the_task_is_no_drift(bench: Bench) -> None:
    """`git status` after the task is not reported as a change, although it writes into the git directory."""
    task = bench.launch("git stash push -q; sleep 0.3; git stash pop -q", "--session", "s-1")
    bench.run("wait", task, "--no-ack")
    wait_until(lambda: bench.show(task)["effects"]["unattributed"] is not None, "the last snapshot")
    git(bench, "status")
    (notice,) = bench.json("inbox", "--session", "s-1", "--peek")["notices"]
    assert (notice["drift"]["moved"], notice["drift"]["summary"]) == (False, STILL)


def test_changes_by_others_after_a_restore_are_unattributed(bench: Bench, repo: Path) -> None:
    """If another process changes files that the task has stashed and restored, this is listed as unattributed."""
    text = f"git stash push -q; git stash pop -q; {until('go')}; sed -i s/old/new/ other.py"
    task = bench.launch(text, "--session", "s-1")
    wait_until(lambda: len(bench.json("effects", task)["restored"]) == 3, "the pop")
    (repo / "a.py").write_text("mine\n")
    (repo / "b.py").write_text("mine\n")
    assert bench.ok("guard", "a.py", "b.py").strip() == "clear"
    (repo / "go").touch()
    bench.run("wait", task, "--no-ack")
    found = bench.json("effects", task)
    assert (found["restored"], found["changed"]) == (paths(bench, *NAMES), paths(bench, "other.py"))
    others = [(each["path"], each["how"]) for each in found["unattributed"]]
    assert [(path, "changed") for path in paths(bench, "a.py", "b.py")] == others[:2]
    (notice,) = bench.json("inbox", "--session", "s-1")["notices"]
    assert "DID NOT RESTORE other.py (changed for" in notice["text"].splitlines()[1]


@pytest.mark.parametrize(
    "begin",
    [
        f"(exec >>log; touch up; {until('go')}; echo served; touch done) & {until('up')}; echo x >log; ls; : >log",
        f"echo x >log; sh -c 'exec >log; ({until('go')}; echo served; touch done) &'",
    ],
    ids=["another has it open", "a child has it open"],
)
def test_write_through_an_open_descriptor_after_a_truncation_is_attributed_to_the_task(
    bench: Bench, repo: Path, begin: str
) -> None:
    """If a log is emptied while the task's server has it open, later writes of the server are the task's."""
    (repo / "log").touch()
    task = bench.launch(f"{begin}; /bin/true; touch go; {until('done')}")
    bench.run("wait", task, "--no-ack")
    assert (repo / "log").read_text() == "served\n"
    found = bench.json("effects", task)
    assert (found["restored"], found["changed"]) == ([], paths(bench, "log"))
    assert paths(bench, "log")[0] not in [each["path"] for each in found["unattributed"] or ()]


@pytest.mark.parametrize(("begin", "is_open"), [("exec >>log", True), ("echo x >>log", False)])
def test_file_open_in_a_process_left_running_is_a_gap(bench: Bench, repo: Path, begin: str, is_open: bool) -> None:
    """If a process that the task left has a file open for writing, its later writes are named as not reported."""
    (repo / "log").touch()
    served = f"{begin}; touch up; {until('go')}; echo served; touch down"
    task = bench.launch(f"({served}) </dev/null 2>/dev/null & {until('up')}")
    bench.run("wait", task, "--no-ack")
    words = "1 file is still open for writing: later writes to it are not recorded"
    wait_until(lambda: bench.json("effects", task)["gaps"] == [words] * is_open, "the gap for the open file")
    (repo / "go").touch()
    wait_until((repo / "down").exists, "the server to end")
    found = bench.json("effects", task)
    assert (found["level"], found["gaps"]) == (("partial", [words]) if is_open else ("observed", []))


def test_change_after_a_short_command_is_drift(bench: Bench, repo: Path) -> None:
    """A change after a very short command is reported, because the file's time shows it.

    The command ended before the first snapshot, so there is no list of files.
    """
    begin(bench, "s-1")
    task = bench.launch("cat other.py", "--session", "s-1")
    bench.run("wait", task, "--no-ack")
    (before,) = bench.json("inbox", "--session", "s-1", "--peek")["notices"]
    assert before["drift"]["moved"] is False
    (repo / "other.py").write_text("another\n")
    (after,) = bench.json("inbox", "--session", "s-1", "--peek")["notices"]
    assert after["drift"]["summary"] == "1 tracked file changed since it ran, read by it or not: other.py"


def test_notice_says_that_drift_is_unknown(bench: Bench, repo: Path) -> None:
    """If a file has a new time and its old content is not recorded, the notice says that it may have changed since."""
    begin(bench, "s-1")
    bench.run("wait", bench.launch("cat other.py", "--session", "s-1"), "--no-ack")
    (repo / "other.py").touch()
    (notice,) = bench.json("inbox", "--session", "s-1", "--peek")["notices"]
    assert notice["drift"]["moved"] is None
    assert "since then: whether anything moved since it ran is unknown (files: 1 could not" in notice["text"]


def test_change_after_the_ending_is_no_effect_of_the_task(bench: Bench, repo: Path) -> None:
    """A caller's change after `wait` is no effect of the task, even if the task has left a process running."""
    task = bench.launch(f"echo 1 > other.py; sleep 0.1; git checkout -q other.py; ({until('go')}) & echo done")
    bench.run("wait", task)
    (repo / "other.py").write_text("by hand\n")
    found = bench.json("effects", task)
    (repo / "go").touch()
    assert (found["restored"], found["changed"]) == (paths(bench, "other.py"), [])


def test_write_of_an_orphaned_process_has_a_command_line(bench: Bench, repo: Path) -> None:
    """A write by a subshell that outlives its script is listed with the command line of the script."""
    text = "{ while [ ! -e go ]; do sleep 0.05; done; echo late > other.py; while [ -e go ]; do sleep 0.05; done; } & :"
    task = bench.launch(text)
    bench.run("wait", task)
    (repo / "go").touch()
    window = window_on(bench, task, "other.py")
    (repo / "go").unlink()
    assert window["by"] == f"/bin/sh -c {text}"


SAME_NUMBER = """
import ctypes, os, struct, sys, time
def fork(number):
    wanted = ctypes.c_int(number)
    words = struct.pack("=11Q", 0, 0, 0, 0, 17, 0, 0, 0, ctypes.addressof(wanted), 1, 0)
    return ctypes.CDLL(None, use_errno=True).syscall(435, words, len(words))
number = os.fork()
if not number:
    os._exit(0)
os.waitpid(number, 0)
for name in ("a.py", "", "b.py", "other.py"):
    time.sleep(float(sys.argv[1]))
    work = ("sh", "-c", f"echo new > {name}; echo fixed > {name}") if name else ("true",)
    child = fork(number)
    if not child:
        if name != "other.py":
            os.execvp(work[0], work)
        os.close(os.open(name, os.O_WRONLY | os.O_TRUNC))
        os.write(os.open(name, os.O_WRONLY), b"old\\n")
        os._exit(0)
    if child < 0:
        os._exit(77)
    os.waitpid(child, 0)
"""
"""A program that starts four children with one process id. Two execute a program that writes, and one writes itself."""


@pytest.mark.root
@pytest.mark.usefixtures("repo")
@pytest.mark.parametrize("pause", ["0.02", "0.2"])
def test_write_is_attributed_to_the_process_that_has_the_id_at_the_time(bench: Bench, pause: str) -> None:
    """If a process id is reused, each write is listed with the process that had the id at that time.

    This also holds if the observer still has a descriptor of the earlier process.
    """
    (bench.root / "numbers.py").write_text(SAME_NUMBER)
    task = bench.launch(f"exec {sys.executable} -B ../numbers.py {pause}")
    bench.run("wait", task)
    if bench.show(task)["exit_code"] == 77:
        pytest.skip("numbers cannot be chosen here")
    found = bench.json("effects", task)
    lines = [line.split("\t") for line in Path(bench.files(task).effects).read_text().splitlines()]
    assert len({line[2] for line in lines if line[1] == "write"}) == 1, "the writes were not made by one process id"
    by = {window["paths"][0]: window["by"] for window in found["windows"]}
    writer = "sh -c echo new > {0}; echo fixed > {0}"
    assert by == {
        "a.py": writer.format("a.py"),
        "b.py": writer.format("b.py"),
        "other.py": f"{sys.executable} -B ../numbers.py {pause}",
    }

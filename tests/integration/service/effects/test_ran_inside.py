"""Commands that ran while another task had changed files and not restored them, and how this is reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from outlive.linux.seccomp import is_known_machine
from tests.effects_steps import window_on
from tests.git_steps import ENVIRON, Worktree
from tests.session_steps import begin, until
from tests.support import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench

pytestmark = pytest.mark.skipif(not is_known_machine(), reason="the calls of this machine are not known")


@pytest.fixture
def repo(bench: Bench) -> Path:
    """Make a repository with a committed file, and change the file."""
    bench.env.update({name: each for name, each in ENVIRON.items() if name.startswith("GIT_")})
    worktree = Worktree(bench.project)
    worktree.commit(**{"a.py": "one\n"})
    worktree.write("a.py", "two\n")
    return bench.project


def stashed(bench: Bench, *options: str) -> str:
    """Launch a task that stashes a.py until `go` exists, and return the task's id."""
    task = bench.launch(f"git stash push -q; {until('go')}; git stash pop -q", *options)
    window_on(bench, task, "a.py")
    return task


def test_command_inside_a_window_names_the_task_and_the_window(bench: Bench, repo: Path) -> None:
    """If a command ran while another task had stashed a file, its notice, `show` and the hand-off name task and file.

    They do so before and after the file is restored.
    """
    begin(bench, "s-1")
    other = stashed(bench)
    inside = bench.launch("cat a.py", "--session", "s-1")
    bench.run("wait", inside, "--no-ack")
    line = f"ran while {other} had a.py changed (git stash push -q)"
    assert f"overlap   {line}" in bench.run("show", inside).stdout
    (repo / "go").touch()
    bench.run("wait", other)
    (notice,) = bench.json("inbox", "--session", "s-1", "--peek")["notices"]
    assert f"overlap: {line}" in notice["text"]
    (overlap,) = notice["overlap"]
    (window,) = overlap["windows"]
    assert (overlap["task"], overlap["paths"], window["paths"]) == (other, [], ["a.py"])
    assert (window["by"], window["restored"]) == ("git stash push -q", True)
    assert [each["task"] for each in bench.show(inside)["overlap"]] == [other]
    handed = begin(bench, "s-1", "--source", "resume")["hand_off"]
    assert line in handed["text"]
    assert [each["task"] for each in handed["ended"][0]["overlap"]] == [other]


@pytest.mark.parametrize("how", ["off", "compare"])
def test_command_names_an_unobserved_task_that_may_have_had_files_away(bench: Bench, repo: Path, how: str) -> None:
    """If another task that is not observed may have stashed files, as its command says, the command's notice names it.

    The guard gives the same reason as `show`.
    """
    begin(bench, "s-1")
    early = bench.launch("cat a.py")
    bench.run("wait", early)
    other = bench.launch(f"git stash push -q; {until('go')}; git stash pop -q", "--observe", how)
    beside = bench.launch(until("go"), "--observe", how)
    wait_until((repo / ".git/refs/stash").exists, "the stash")
    words = "by its text takes files away for a while (git stash push -q)"
    assert words in bench.run("guard", "a.py").stdout
    inside = bench.launch("cat a.py", "--session", "s-1")
    bench.run("wait", inside, "--no-ack")
    (repo / "go").touch()
    bench.run("wait", other, beside)
    line = f"ran while {other} may have had files changed: not observed, {words}"
    assert f"overlap   {line}" in bench.run("show", inside).stdout
    (notice,) = bench.json("inbox", "--session", "s-1", "--peek")["notices"]
    assert f"overlap: {line}" in notice["text"]
    ((task, windows, by),) = [(each["task"], each["windows"], each["by_text"]) for each in notice["overlap"]]
    assert (task, windows, by) == (other, [], "git stash push -q")
    assert line in begin(bench, "s-1", "--source", "resume")["hand_off"]["text"]
    assert bench.show(early)["overlap"] == []


def test_unobserved_task_that_removes_a_directory_is_named_with_it(bench: Bench, repo: Path) -> None:
    """If an unobserved task removes a directory, commands that ran meanwhile name it while the task may fail.

    If the task succeeds, it was meant to remove the directory, and is no longer named.
    """
    Worktree(repo, new=False).commit(**{"src/b.py": "one\n"})
    other = bench.launch(f"rm -rf src; {until('go')}; exit $(cat go)", "--observe", "off")
    wait_until(lambda: not (repo / "src").exists(), "the directory to be away")
    inside = bench.launch("cat a.py")
    bench.run("wait", inside)
    line = (
        f"ran while {other} may have had src changed: not observed, by its text takes files away and does not put them"
    )
    assert line in bench.run("show", inside).stdout
    (repo / "go").write_text("0")
    bench.run("wait", other)
    assert bench.show(inside)["overlap"] == []


def test_command_outside_a_window_has_no_overlap(bench: Bench, repo: Path) -> None:
    """A command that ran before the file was stashed, after it was restored, or elsewhere reports no such task."""
    begin(bench, "s-1")
    early = bench.launch("cat a.py", "--session", "s-1")
    bench.run("wait", early, "--no-ack")
    other = stashed(bench)
    elsewhere = bench.root / "elsewhere"
    elsewhere.mkdir()
    beside = bench.launch("cat /etc/hostname", cwd=elsewhere)
    bench.run("wait", beside)
    (repo / "go").touch()
    bench.run("wait", other)
    late = bench.launch("cat a.py", "--session", "s-1")
    bench.run("wait", late, "--no-ack")
    for task in (early, beside, late):
        assert bench.show(task)["overlap"] == [], task


def test_closed_window_after_a_short_command_is_no_drift(bench: Bench, repo: Path) -> None:
    """After a short command, it is unknown whether a file that another task had changed differs now.

    There is no full snapshot after such a command.
    """
    begin(bench, "s-1")
    short = bench.launch("cat a.py", "--session", "s-1")
    bench.run("wait", short, "--no-ack")
    other = stashed(bench)
    (repo / "go").touch()
    bench.run("wait", other)
    wait_until(lambda: bench.show(other)["effects"]["paths_restored"] == 1, "the last snapshot")
    drift = bench.show(short)["drift"]
    assert (drift["moved"], drift["details"]) == (None, [])
    assert f"a.py: changed and restored by {other} since" in drift["summary"]
    (repo / "a.py").write_text("three\n")
    assert bench.show(short)["drift"]["moved"] is True, "a change after the window was closed is not drift"

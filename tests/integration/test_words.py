"""What people see: tables that fit, what runs says last, a line that shows a wait goes on, groups as one."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import termios
import time
from typing import TYPE_CHECKING

import pytest

from outlive.cli.main import VERBS
from outlive.cli.render import columns_of
from tests.support import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench


class Terminal:
    """The command line on a terminal of so many columns, and what it wrote there."""

    def __init__(self, bench: Bench, columns: int, *words: str, **env: str) -> None:
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            os.chdir(bench.project)
            call = bench.command(*words)
            os.execve(call[0], call, {**bench.env, "TERM": "xterm", "LANG": "C.UTF-8", **env})
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.text = ""

    def read_until(self, text: str) -> None:
        """Until it has written this."""
        until = time.monotonic() + PATIENCE_S
        while text not in self.text:
            assert time.monotonic() < until, f"{text!r} never came: {self.text!r}"
            self._read()

    def _read(self) -> bool:
        if not select.select([self._fd], [], [], 0.1)[0]:
            return True
        try:
            part = os.read(self._fd, 4096)
        except OSError:
            return False
        self.text += part.decode("utf-8", "replace")
        return bool(part)

    def finish(self) -> int:
        """Read to the end; its exit code."""
        while self._read():
            pass
        os.close(self._fd)
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])


@pytest.mark.parametrize("columns", [32, 60, 80, 120])
def test_the_list_fits_the_terminal(bench: Bench, columns: int) -> None:
    """Whatever the commands are called and write: no line is longer than the terminal is wide."""
    for text in ("echo " + "x" * 300, "echo 日本語のコマンド日本語のコマンド日本語のコマンド", "exit 3"):
        bench.run("wait", bench.launch(text))
    running = bench.launch("echo " + "long " * 60 + "; sleep 60")
    wait_until(lambda: bench.ok("output", running))
    terminal = Terminal(bench, columns, "list", NO_COLOR="1")
    assert terminal.finish() == 0
    lines = terminal.text.splitlines()
    assert len(lines) == 6
    assert max(map(columns_of, lines)) <= columns, lines
    assert all(line.startswith(("ID", "t", "  > ")) for line in lines)


def test_what_runs_says_last_is_in_the_list(bench: Bench) -> None:
    """The last line that says anything, of running tasks only; a bar that redraws itself shows its last state."""
    running = bench.launch("echo first; printf 'a 10%%\\ra 90%%\\n\\n'; sleep 60")
    ended = bench.launch("echo over")
    bench.ok("wait", ended)
    wait_until(lambda: "90%" in bench.ok("output", running))
    listed = bench.ok("list").splitlines()
    assert [line for line in listed if line.startswith("  > ")] == ["  > a 90%"]


def test_times_are_told_as_people_tell_them(bench: Bench) -> None:
    """How long ago and how long, never a time stamp."""
    bench.ok("wait", bench.launch("true"))
    head, row = bench.ok("list").splitlines()
    assert head.split() == ["ID", "STATE", "ENDING", "TOOK", "AGE", "WHAT"]
    took, age = row.split()[4:6]
    assert took.endswith(("ms", "s"))
    assert age.endswith(("ms", "s"))


@pytest.mark.parametrize("how", ["wait", "run --wait"])
def test_a_wait_shows_on_a_terminal_that_it_goes_on(bench: Bench, how: str) -> None:
    """What it waits for, how long, what that says; gone at the end, and not in what was asked for."""
    command = "echo compiling; read x < gate; echo done"
    os.mkfifo(bench.project / "gate")
    if how == "wait":
        terminal = Terminal(bench, 80, "wait", bench.launch(command))
    else:
        terminal = Terminal(bench, 80, "run", "--wait", "60s", command)
    terminal.read_until("compiling")
    assert "waiting for t" in terminal.text
    (bench.project / "gate").write_text("\n")
    assert terminal.finish() == 0
    assert terminal.text.rpartition("\x1b[K")[2].strip().startswith("t")


def test_a_wait_for_several_shows_how_many_are_left(bench: Bench) -> None:
    """Those that have ended are not waited for any more; of the last one it is shown what it says."""
    for name in "abc":
        os.mkfifo(bench.project / f"gate-{name}")
    tasks = [bench.launch(f"echo compiling {name}; read x < gate-{name}") for name in "abc"]
    terminal = Terminal(bench, 80, "wait", *tasks)
    terminal.read_until("waiting for 3 of 3 tasks")
    (bench.project / "gate-b").write_text("\n")
    terminal.read_until("waiting for 2 of 3 tasks")
    (bench.project / "gate-a").write_text("\n")
    terminal.read_until("compiling c")
    assert f"waiting for {tasks[2]}" in terminal.text
    (bench.project / "gate-c").write_text("\n")
    assert terminal.finish() == 0


def test_what_has_said_nothing_yet_is_answered_without_an_empty_line(bench: Bench) -> None:
    """Of a task that goes on, `run --wait` shows what it has said; nothing is no line."""
    done = bench.run("run", "--wait", "10ms", "sleep 60")
    assert done.returncode == 4
    assert done.stderr.startswith("still running after 10ms")


def test_without_a_terminal_a_wait_says_nothing_meanwhile(bench: Bench) -> None:
    """Its output is for programs."""
    done = bench.run("wait", bench.launch("sleep 1.3"))
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1


def test_every_help_has_an_example(bench: Bench) -> None:
    """And the list of commands names each."""
    listed = bench.ok("help")
    for verb in VERBS:
        assert verb in listed
        assert "\nexamples\n  outlive " in bench.ok("help", verb) or verb == "completion", verb


def test_a_group_is_one_thing_of_one_project(bench: Bench) -> None:
    """Row 55: list, wait and cancel mean its members, all of them, and nobody else's."""
    elsewhere = bench.root / "elsewhere"
    elsewhere.mkdir()
    members = [bench.launch("sleep 60", "--group", "g") for _ in range(2)]
    members.append(bench.launch("sleep 60", "--group", "g", "--lock", "l", "--after-any", members[0]))
    foreign = bench.ok("run", "--group", "g", "--", "sleep", "60", cwd=elsewhere)
    alone = bench.launch("sleep 60")
    document = bench.json("list", "--group", "g")
    assert {task["id"] for task in document["tasks"]} == set(members)
    assert document["remaining"] == 3
    bench.ok("cancel", "--group", "g")
    assert {bench.show(task)["state"] for task in members} == {"cancelled"}
    assert {bench.show(task)["state"] for task in (foreign, alone)} == {"running"}
    assert bench.json("list", "--group", "g")["remaining"] == 0
    assert bench.run("wait", "--group", "g").returncode == 1


@pytest.mark.parametrize("verb", ["wait", "cancel"])
def test_a_group_without_members_has_not_ended(bench: Bench, tmp_path: Path, verb: str) -> None:
    """A wrong name, or the right one in another project: nobody is told that all is well."""
    bench.run("wait", bench.launch("exit 1", "--group", "g"))
    for done in (bench.run(verb, "--group", "h"), bench.run(verb, "--group", "g", cwd=tmp_path)):
        assert (done.returncode, done.stdout) == (2, "")
        assert "no task of this project is in the group" in done.stderr
    assert bench.run(verb, "--group", "g").returncode == (1 if verb == "wait" else 0)


def test_a_list_of_nothing_names_the_group(bench: Bench) -> None:
    """It may be empty; but who has mistyped the name reads it."""
    bench.launch("true", "--group", "g")
    assert bench.ok("list", "--group", "h\x1b[2J").startswith("no tasks of the group h in this project")
    assert bench.ok("list", "--group", "h", "--all") == "no tasks of the group h"
    assert bench.json("list", "--group", "h") == {"tasks": [], "more": False, "remaining": 0}


def test_a_group_ends_when_nobody_of_it_is_left(bench: Bench) -> None:
    """Its ending is a question, not a counter: a member that joins while others are waited for counts."""
    os.mkfifo(bench.project / "gate")
    inner = " ".join(bench.command("run", "--group", "g", "--", "sh", "-c", "'sleep 0.5; exit 7'"))
    first = bench.launch(f"read x < gate; {inner}", "--group", "g")
    terminal = Terminal(bench, 80, "wait", "--group", "g")
    terminal.read_until("waiting for")
    (bench.project / "gate").write_text("\n")
    assert terminal.finish() == 1
    assert f"{first} " in terminal.text
    assert "exit 7" in terminal.text

"""What users see on a terminal: tables, progress, groups, help and hints."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from typing import TYPE_CHECKING

import pytest

from outlive.cli.formatting import columns_of
from outlive.cli.main import VERBS, load
from outlive.cli.parser import help_text
from tests.support import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench


class Terminal:
    """A run of the command line on a terminal, with the text that it has printed."""

    def __init__(self, bench: Bench, columns: int, *words: str, **env: str) -> None:
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            os.chdir(bench.project)
            call = bench.command(*words)
            os.execve(call[0], call, {**bench.env, "TERM": "xterm", "LANG": "C.UTF-8", **env})
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.text = ""

    def read_until(self, text: str) -> None:
        """Read until the command has printed this text."""
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
        """Read until the command ends, and return its exit code."""
        while self._read():
            pass
        os.close(self._fd)
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])


@pytest.mark.parametrize("columns", [32, 60, 80, 120])
def test_list_fits_the_terminal(bench: Bench, columns: int) -> None:
    """No line of `list` is wider than the terminal, even with long or double-width commands and output."""
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


def test_list_shows_the_last_output_line_of_running_tasks(bench: Bench) -> None:
    """`list` shows the last line of a running task's output that is not empty.

    A progress bar is shown in its last state.
    """
    running = bench.launch("echo first; printf 'a 10%%\\ra 90%%\\n\\n'; sleep 60")
    ended = bench.launch("echo over")
    bench.ok("wait", ended)
    wait_until(lambda: "90%" in bench.ok("output", running))
    listed = bench.ok("list").splitlines()
    assert [line for line in listed if line.startswith("  > ")] == ["  > a 90%"]


def test_list_shows_commands_directories_and_what_queued_tasks_wait_for(bench: Bench) -> None:
    """`list` names the task and the lock that a queued task waits for. With `--all`, `list` adds the project."""
    subprocess.run(["git", "init", "-q", str(bench.project)], check=True)
    (bench.project / "deep").mkdir()
    holder = bench.launch("sleep 60", "--lock", "l", "--description", "holds it", cwd=bench.project / "deep")
    waiting = bench.launch("echo mine", "--lock", "l")
    terminal = Terminal(bench, 80, "list")
    terminal.read_until("(holds it)")
    lines = [line.rstrip() for line in terminal.text.splitlines() if line.strip()]
    assert max(map(len, lines)) <= 80
    assert lines[1].split()[-3:] == [".", "echo", "mine"]
    assert lines[2] == f"  > waits for its turn in l, after {holder}"
    assert lines[3].endswith("deep  sleep 60 (holds it)")
    assert str(bench.project)[-15:] in bench.ok("list", "--all")
    assert f"waiting   waits for its turn in l, after {holder}" in bench.ok("show", waiting)
    document = bench.show(waiting)["waiting_for"]
    assert (document["tasks"], document["names"], bench.show(holder)["waiting_for"]) == ([holder], ["l"], None)


def test_list_shows_what_an_ended_task_left_running(bench: Bench) -> None:
    """If an ended task has left a process running, `list` shows the process and its command below the task."""
    task = bench.launch("sleep 61 & sleep 62 & echo started")
    bench.ok("wait", task)
    (below,) = (line for line in bench.ok("list").splitlines() if line.startswith("  > "))
    first, *others = bench.show(task)["left_running"]
    assert len(others) == 1
    assert below == f"  > left running: process {first['pid']} and 1 more: {first['command']}"


def test_task_that_never_began_is_shown_without_effects_and_duration(bench: Bench) -> None:
    """If a command never began, `show`, `cancel` and the notice say so. They show neither effects nor a duration."""
    bench.launch("sleep 60", "--lock", "l")
    waiting = bench.launch("echo mine", "--lock", "l", "--session", "s-1")
    assert "touched   nothing, because the task has not begun" in bench.ok("show", waiting)
    assert bench.ok("cancel", waiting) == f"{waiting} cancelled (requested) before it began: echo mine"
    assert f"- {waiting} cancelled (requested) before it began: echo mine" in bench.ok("inbox", "--session", "s-1")


def test_error_follows_earlier_output_when_both_streams_are_one_file(bench: Bench) -> None:
    """If stdout and stderr are one file, `install` without a terminal prints its changes first and then the error."""
    done = subprocess.run(
        bench.command("install", "--client", "claude"),
        env={**bench.env, "HOME": str(bench.project), "PYTHONUNBUFFERED": ""},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-2:] == [
        "outlive: nothing was changed, because there is no terminal to ask on",
        "hint: --yes makes the changes without asking",
    ]


def test_list_shows_durations_and_ages(bench: Bench) -> None:
    """`list` shows durations and ages as a number with a unit, and not as a time stamp."""
    bench.ok("wait", bench.launch("true"))
    head, row = bench.ok("list").splitlines()
    assert head.split() == ["ID", "STATE", "ENDING", "TOOK", "AGE", "IN", "WHAT"]
    took, age = row.split()[4:6]
    assert took.endswith(("ms", "s"))
    assert age.endswith(("ms", "s"))


@pytest.mark.parametrize("how", ["wait", "run --wait"])
def test_wait_shows_its_progress_on_a_terminal(bench: Bench, how: str) -> None:
    """On a terminal, `wait` shows a line with the task, the time and the last output.

    At the end, it erases the line.
    """
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


def test_wait_for_several_tasks_shows_how_many_are_left(bench: Bench) -> None:
    """`wait` for several tasks shows how many are left.

    For the last one, it shows the id and the last line of output.
    """
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


def test_run_wait_prints_no_empty_line_when_a_task_has_no_output(bench: Bench) -> None:
    """If a task has no output by the timeout, `run --wait` prints only that the task still runs."""
    done = bench.run("run", "--wait", "10ms", "sleep 60")
    assert done.returncode == 4
    assert done.stderr.startswith("still running after 10ms")


def test_wait_shows_no_progress_without_a_terminal(bench: Bench) -> None:
    """Without a terminal, `wait` prints one line with the ending and no progress. A program may read the output."""
    done = bench.run("wait", bench.launch("sleep 1.3"))
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1


def test_help_of_every_command_has_an_example(bench: Bench) -> None:
    """`outlive help` lists every command, and the help of each command but `completion` has an example."""
    listed = bench.ok("help")
    for verb in VERBS:
        assert verb in listed
        assert "\nexamples\n  outlive " in bench.ok("help", verb) or verb == "completion", verb


def test_group_options_mean_the_members_of_one_project(bench: Bench) -> None:
    """With `--group`, `list`, `wait` and `cancel` mean the group in their own project.

    Groups of the same name in other projects are left alone. Row 55 of the acceptance scenarios.
    """
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
def test_wait_and_cancel_refuse_a_group_without_members(bench: Bench, tmp_path: Path, verb: str) -> None:
    """`wait` and `cancel` refuse a group that has no members, because its name may be mistyped.

    Without the error, the call would look as if the group had ended.
    """
    bench.run("wait", bench.launch("exit 1", "--group", "g"))
    for done in (bench.run(verb, "--group", "h"), bench.run(verb, "--group", "g", cwd=tmp_path)):
        assert (done.returncode, done.stdout) == (2, "")
        assert "no task of this project is in the group" in done.stderr
    assert bench.run(verb, "--group", "g").returncode == (1 if verb == "wait" else 0)


def test_empty_list_names_the_group(bench: Bench) -> None:
    """If a group is empty, the message of `list` names it, so that the user sees a mistyped name.

    Escape sequences in the name are removed.
    """
    bench.launch("true", "--group", "g")
    assert bench.ok("list", "--group", "h\x1b[2J").startswith("no tasks of the group h in this project")
    assert bench.ok("list", "--group", "h", "--all") == "no tasks of the group h"
    assert bench.json("list", "--group", "h") == {"tasks": [], "foreign": [], "more": False, "remaining": 0}


def test_wait_for_a_group_includes_members_that_join_later(bench: Bench) -> None:
    """`wait --group` also waits for a member of the group that another member launches during the wait."""
    os.mkfifo(bench.project / "gate")
    inner = " ".join(bench.command("run", "--group", "g", "--", "sh", "-c", "'sleep 0.5; exit 7'"))
    first = bench.launch(f"read x < gate; {inner}", "--group", "g")
    terminal = Terminal(bench, 80, "wait", "--group", "g")
    terminal.read_until("waiting for")
    (bench.project / "gate").write_text("\n")
    assert terminal.finish() == 1
    assert f"{first} " in terminal.text
    assert "exit 7" in terminal.text


@pytest.mark.parametrize("verb", VERBS)
def test_help_fits_eighty_columns(verb: str) -> None:
    """No line of a command's help is longer than 80 characters, except examples."""
    too_long = [
        line for line in help_text(load(verb)).splitlines() if len(line) > 80 and not line.startswith("  outlive")
    ]
    assert too_long == []


def test_list_of_commands_fits_eighty_columns(bench: Bench) -> None:
    """No line of `outlive help` is longer than 80 characters."""
    assert [line for line in bench.ok("help").splitlines() if len(line) > 80] == []


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("run", "ls", "-la"), "outlive run -- ls -la"),
        (("run", "--cwd", "/", "ls", "--all", "a b"), "outlive run -- ls --all 'a b'"),
        (("run", "make", "test"), "outlive run -- make test"),
        (("run", "true", "--timout", "5m"), "did you mean --timeout?"),
        (("lst",), "did you mean `outlive list`?"),
        (("ls",), "did you mean `outlive list`?"),
        (("kill", "t1"), "did you mean `outlive cancel`?"),
        (("staus",), "did you mean `outlive list`?"),
        (("top",), "did you mean `outlive list`?"),
        (("info", "t1"), "did you mean `outlive show`?"),
        (("restart", "t1"), "did you mean `outlive retry`?"),
        (("delete", "t1"), "did you mean `outlive sweep`?"),
        (("help", "canel"), "did you mean `outlive cancel`?"),
        (("list", "--al"), "did you mean --all?"),
        (("guard", "git", "commit", "-am", "done"), "outlive guard -- git commit -am done"),
        (("frobnicate",), "`outlive help` lists the commands"),
    ],
)
def test_mistyped_call_gets_a_hint_with_the_right_call(bench: Bench, words: tuple[str, ...], hint: str) -> None:
    """A mistyped call launches nothing. Its error has a hint with the right call, which can be typed as printed."""
    done = bench.run(*words)
    assert done.returncode == 2
    assert hint in done.stderr
    assert bench.json("list")["tasks"] == []


@pytest.mark.parametrize("words", [("extra",), ("--", "extra"), ("--", "--all")])
@pytest.mark.parametrize("verb", ["list", "sweep", "audit", "gate", "inbox", "hand-off", "doctor", "uninstall", "mcp"])
def test_command_without_arguments_refuses_them(bench: Bench, verb: str, words: tuple[str, ...]) -> None:
    """A command that takes no arguments refuses them.

    Otherwise, `list ID` would print all tasks instead of this one.
    """
    done = bench.run(verb, *words)
    assert done.returncode == 2, done.stdout
    assert "no word" in done.stderr


def test_ids_may_stand_after_two_dashes(bench: Bench) -> None:
    """Ids and texts may follow after `--`. Only for `run` and `guard`, the words after `--` are a command."""
    other, task = bench.launch("sleep 60"), bench.launch("--stdin", "read line; echo got $line")
    bench.ok("send", task, "--", "--eof")
    bench.ok("wait", "--", task)
    assert bench.ok("output", "--", task) == "got --eof"
    assert bench.run("cancel", "--", task).returncode == 2, "`cancel` accepted an ended task"
    assert bench.run("show", task, "--", other).returncode == 2, "`show` accepted two ids"
    assert bench.json("show", other)["state"] == "running"
    bench.ok("cancel", "--", other)


def test_run_suggests_a_shell_line_when_a_program_name_has_blanks(bench: Bench) -> None:
    """If a program's name contains a blank, as in `run -- 'make test'`, the hint shows the words as a shell line."""
    done = bench.run("run", "--", "echo 'a b' && true")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("""outlive run 'echo '"'"'a b'"'"' && true'""")
    assert "the task is recorded as failed" in bench.run("run", "--", "nosuch").stderr


def test_invalid_since_gets_a_hint_with_valid_values(bench: Bench) -> None:
    """An invalid value of `--since` gets a hint with valid values.

    Durations come first, because people use them most.
    """
    done = bench.run("list", "--since", "yesterday")
    assert done.returncode == 2
    assert "hint: write a time span as 90s, 15m, 2h or 7d; or give seconds" in done.stderr


def test_help_accepts_its_own_name(bench: Bench) -> None:
    """`outlive help help` prints the same as `outlive help`."""
    assert bench.ok("help", "help") == bench.ok("help") == bench.ok()


def test_version_has_a_short_option(bench: Bench) -> None:
    """`-V`, `--version` and `version` print the same."""
    assert bench.ok("-V") == bench.ok("--version") == bench.ok("version")


def test_guard_takes_a_command_after_two_dashes(bench: Bench) -> None:
    """`guard` takes a command after `--`, without quotes. It refuses a call with a command and paths."""
    assert bench.ok("guard", "--", "git", "add", ".") == bench.ok("guard", "--command", "git add .")
    for words in (("guard",), ("guard", "--"), ("guard", "a", "--", "ls"), ("guard", "--command", "ls", "--", "ls")):
        assert bench.run(*words).returncode == 2, words


def test_guard_refuses_a_command_without_two_dashes(bench: Bench) -> None:
    """`guard` refuses the words of a command that do not follow `--`.

    Otherwise, it would take the words for paths that do not exist, and answer `clear`.
    """
    done = bench.run("guard", "git", "commit")
    assert (done.returncode, done.stdout) == (2, "")
    assert "outlive guard -- git commit" in done.stderr
    for words in (("git",), ("./git", "a"), ("nowhere.py", "git")):
        assert bench.ok("guard", *words) == "clear", "a path was taken for a command"
    (bench.project / "git").touch()
    assert bench.ok("guard", "git", "commit") == "clear"


def test_wait_until_shows_the_end_of_the_output_when_no_line_matches(bench: Bench) -> None:
    """If no line matches, `wait --until` first prints the end of the task's output, which may show the reason."""
    task = bench.launch("echo address already in use; exit 1")
    done = bench.run("wait", task, "--until", "listening")
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "address already in use"
    assert "no line matches 'listening'" in done.stderr

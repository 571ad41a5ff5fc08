"""Commands that wait end soon after the reader of their output has closed its pipe, terminal or connection."""

from __future__ import annotations

import os
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.session_steps import begin
from tests.support import PATIENCE_S, open_files, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Bench

BLOCKING = {
    "wait": ("wait", "TASK"),
    "wait --until": ("wait", "TASK", "--until", "never printed"),
    "output --follow": ("output", "TASK", "--follow"),
    "inbox --follow": ("inbox", "--session", "s-1", "--follow"),
    "gate --wait": ("gate", "--session", "s-1", "--wait"),
    "run --wait": ("run", "--wait", "1h", "sleep 600"),
}


def pipe() -> tuple[int, int]:
    """Return the two ends of a pipe: the test's end and the command's end."""
    return os.pipe()


def terminal() -> tuple[int, int]:
    """Return the two ends of a terminal: the test's end and the command's end."""
    return os.openpty()


def connection() -> tuple[int, int]:
    """Return the two ends of a socket: the test's end and the command's end.

    An ssh server gives such a socket to its commands.
    """
    ours, theirs = socket.socketpair()
    return ours.detach(), theirs.detach()


def ends_without_reader(bench: Bench, words: tuple[str, ...], ends: tuple[int, int], stdout: int | None = None) -> int:
    """Close the reader's end while a command waits, and return the command's exit code."""
    ours, theirs = ends
    command = subprocess.Popen(
        bench.command(*words), env=bench.env, cwd=bench.project, stdin=subprocess.DEVNULL,
        stdout=theirs if stdout is None else stdout, stderr=subprocess.DEVNULL if stdout is None else theirs,
    )  # fmt: skip
    try:
        os.close(theirs)
        wait_until(lambda: "anon_inode:[eventpoll]" in open_files(command.pid), "the command that blocks")
        assert command.poll() is None
        os.close(ours)
        return command.wait(PATIENCE_S)
    finally:
        command.kill()
        command.wait()


@pytest.mark.parametrize(
    ("verb", "ends"), [*((verb, pipe) for verb in BLOCKING), ("wait", terminal), ("wait", connection)]
)
def test_blocking_command_ends_when_its_reader_has_gone(
    bench: Bench, verb: str, ends: Callable[[], tuple[int, int]]
) -> None:
    """A command that waits for a task ends soon after the reader of its output has gone. The task continues to run."""
    begin(bench, "s-1")
    task = bench.launch("sleep 600", "--session", "s-1")
    words = tuple(task if word == "TASK" else word for word in BLOCKING[verb])
    code = ends_without_reader(bench, words, ends())
    if "wait" in verb and "gate" not in verb:
        assert code == 4, "the exit code does not say that the task still runs"
    assert {each["state"] for each in bench.json("list")["tasks"]} == {"running"}


def test_wait_with_stdout_in_a_file_ends_when_the_reader_of_stderr_has_gone(bench: Bench, tmp_path: Path) -> None:
    """`wait` with stdout in a file, as in `ssh host 'outlive wait ID > file'`, exits with 4 if stderr is closed."""
    task = bench.launch("sleep 600")
    with (tmp_path / "out").open("w") as file:
        assert ends_without_reader(bench, ("wait", task), pipe(), file.fileno()) == 4

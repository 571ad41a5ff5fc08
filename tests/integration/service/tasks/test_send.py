"""Sending input to a task: all senders write into one stream, and `--eof` ends it."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from outlive import Outlive
from tests.support import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from tests.support import Bench


def said(bench: Bench, task: str) -> str:
    """Return the output of a task so far."""
    return bench.run("output", task).stdout


def test_task_reads_lines_from_several_senders(bench: Bench) -> None:
    """A task reads lines from several calls of `send`, and ends when `--eof` closes its input."""
    task = bench.launch("while read -r line; do echo got $line; done; echo end", "--stdin")
    bench.ok("send", task, "one")
    bench.ok("send", task, "two three")
    wait_until(lambda: said(bench, task) == "got one\ngot two three\n", "both lines")
    assert bench.show(task)["state"] == "running"
    bench.ok("send", task, "last", "--eof")
    bench.ok("wait", task)
    assert said(bench, task) == "got one\ngot two three\ngot last\nend\n"


def test_send_passes_its_stdin_unchanged(bench: Bench) -> None:
    """`send` passes 256 kB of arbitrary bytes unchanged. This is more than a pipe can buffer."""
    task = bench.launch("wc -c", "--stdin")
    content = bytes(range(256)) * 1000
    words = bench.command("send", task, "-", "--eof")
    subprocess.run(words, env=bench.env, cwd=bench.project, input=content, check=True, timeout=PATIENCE_S)
    bench.ok("wait", task)
    assert said(bench, task).strip() == str(len(content))


def test_task_without_stdin_reads_nothing(bench: Bench) -> None:
    """A task without `--stdin` has empty input, and `send` to it is refused with a hint."""
    task = bench.launch("cat; echo end; exec sleep 60")
    wait_until(lambda: said(bench, task) == "end\n", "the task to print that it read nothing")
    refused = bench.run("send", task, "x")
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (2, f"outlive: task {task} takes no input")
    assert "hint: launch it with --stdin" in refused.stderr


def test_send_is_refused_when_the_task_cannot_read(bench: Bench) -> None:
    """`send` refuses an ended task, a closed input, a queued task and invalid arguments."""
    ended = bench.launch("true", "--stdin")
    bench.ok("wait", ended)
    told = bench.launch("cat; exec sleep 60", "--stdin")
    bench.ok("send", told, "--eof")
    waiting = bench.launch("cat", "--stdin", "--after", told)
    words = {ended: "reads nothing any more", told: "takes no more input", waiting: "reads nothing yet"}
    for task, why in words.items():
        wait_until(lambda t=task, w=why: w in bench.run("send", t, "x").stderr, why)  # type: ignore[misc]
        assert bench.run("send", task, "x").returncode == 2
    for nonsense in (("send",), ("send", told), ("send", "tzzzzzzz", "x"), ("send", told, "a", "b")):
        assert bench.run(*nonsense).returncode == 2, nonsense


@pytest.mark.parametrize("observe", ["auto", "off"])
def test_task_keeps_its_input_when_the_keeper_is_killed(bench: Bench, observe: str) -> None:
    """If the keeper is killed, later input still reaches the task, because the witness has the input open.

    `--eof` still ends the input.
    """
    task = bench.launch("exec cat", "--stdin", "--observe", observe)
    bench.ok("send", task, "before")
    bench.kill(task, "keeper")
    bench.ok("send", task, "after", "--eof")
    bench.ok("wait", task)
    assert said(bench, task) == "before\nafter\n"


def test_send_raises_when_the_task_does_not_read(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the task does not read, `send` raises an error that says how many bytes were taken. The task runs on."""
    monkeypatch.setattr("outlive.service.tasks.send._PATIENCE_S", 0.2)
    client = Outlive(home=str(bench.state))
    task = client.run("exec sleep 60", stdin=True, cwd=bench.project)
    with pytest.raises(Exception, match=r"does not read: \d+ of 200000 bytes were taken"):
        task.send(b"x" * 200_000)
    with pytest.raises(Exception, match="too much to be sent at once"):
        task.send(b"x" * (2 << 20))
    assert task.refresh().state == "running"


def test_retry_has_its_own_input(bench: Bench) -> None:
    """A second attempt does not get the input that was sent to the first one."""
    task = bench.launch("read -r word; echo $word; exit 3", "--stdin")
    bench.ok("send", task, "first")
    bench.run("wait", task)
    bench.ok("retry", task)
    bench.ok("send", task, "second")
    bench.run("wait", task)
    assert said(bench, task) == "second\n"
    assert json.loads(bench.run("show", task, "--json").stdout)["attempt"] == 2

"""Input for a task: one stream, whoever sends it, and an end when somebody says so."""

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
    """What a task has written so far."""
    return bench.run("output", task).stdout


def test_what_is_sent_is_read_line_by_line(bench: Bench) -> None:
    """By several senders, as one input; without its end the task goes on reading."""
    task = bench.launch("while read -r line; do echo got $line; done; echo end", "--stdin")
    bench.ok("send", task, "one")
    bench.ok("send", task, "two three")
    wait_until(lambda: said(bench, task) == "got one\ngot two three\n", "both lines")
    assert bench.show(task)["state"] == "running"
    bench.ok("send", task, "last", "--eof")
    bench.ok("wait", task)
    assert said(bench, task) == "got one\ngot two three\ngot last\nend\n"


def test_bytes_are_sent_as_they_are(bench: Bench) -> None:
    """What we read ourselves, also if it is no text, and more than a pipe holds at once."""
    task = bench.launch("wc -c", "--stdin")
    content = bytes(range(256)) * 1000
    words = bench.command("send", task, "-", "--eof")
    subprocess.run(words, env=bench.env, cwd=bench.project, input=content, check=True, timeout=PATIENCE_S)
    bench.ok("wait", task)
    assert said(bench, task).strip() == str(len(content))


def test_without_stdin_a_task_reads_nothing(bench: Bench) -> None:
    """As ever; and sending is refused in words."""
    task = bench.launch("cat; echo end; exec sleep 60")
    wait_until(lambda: said(bench, task) == "end\n", "it to read nothing")
    refused = bench.run("send", task, "x")
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (2, f"outlive: task {task} takes no input")
    assert "hint: launch it with --stdin" in refused.stderr


def test_sending_to_the_wrong_task_at_the_wrong_time_is_refused(bench: Bench) -> None:
    """One that has ended, one that was told the end already, one that waits for its turn, or nonsense."""
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
def test_input_outlives_the_keeper(bench: Bench, observe: str) -> None:
    """The witness holds it open: nothing that was sent is lost, and the end can still be told."""
    task = bench.launch("exec cat", "--stdin", "--observe", observe)
    bench.ok("send", task, "before")
    bench.kill(task, "keeper")
    bench.ok("send", task, "after", "--eof")
    bench.ok("wait", task)
    assert said(bench, task) == "before\nafter\n"


def test_a_task_that_does_not_read_is_told_of(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """How much was taken, and that the rest was not; the task goes on."""
    monkeypatch.setattr("outlive.service.send._PATIENCE_S", 0.2)
    client = Outlive(home=str(bench.state))
    task = client.run("exec sleep 60", stdin=True, cwd=bench.project)
    with pytest.raises(Exception, match=r"does not read: \d+ of 200000 bytes were taken"):
        task.send(b"x" * 200_000)
    with pytest.raises(Exception, match="too much to be sent at once"):
        task.send(b"x" * (2 << 20))
    assert task.refresh().state == "running"


def test_a_retry_has_an_input_of_its_own(bench: Bench) -> None:
    """What was sent to the attempt before is not read again."""
    task = bench.launch("read -r word; echo $word; exit 3", "--stdin")
    bench.ok("send", task, "first")
    bench.run("wait", task)
    bench.ok("retry", task)
    bench.ok("send", task, "second")
    bench.run("wait", task)
    assert said(bench, task) == "second\n"
    assert json.loads(bench.run("show", task, "--json").stdout)["attempt"] == 2

"""What a client runs in the background by itself: told in the hand-off, with what can be seen of it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from outlive.domain.foreign import Seen, judge
from outlive.service.foreign import note_foreign
from tests.session_steps import begin
from tests.support import kill, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support import Bench


class Client:
    """A client that runs a shell of its own, which writes to a file; both are real processes."""

    def __init__(self, bench: Bench, output: Path) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        with output.open("w") as file:
            self.shell = subprocess.Popen(["sleep", "600"], stdout=file, start_new_session=True)
        begin(bench, "s-1", "--pid", str(self.process.pid))
        self.seen = Seen(id="b1", command="npm run dev", output=str(output))
        note_foreign(bench.home, "s-1", str(bench.project), "claude", [self.seen], are_all=False)

    def end(self) -> None:
        """Take both away."""
        for process in (self.process, self.shell):
            kill(process.pid)
            process.wait()


@pytest.fixture
def client(bench: Bench, tmp_path: Path) -> Iterator[Client]:
    """Start a client, and take away what is left of it."""
    started = Client(bench, tmp_path / "b1.output")
    yield started
    for process in (started.process, started.shell):
        if process.poll() is None:
            process.kill()
            process.wait()


def told(bench: Bench, *options: str, **more: Any) -> list[tuple[str, str]]:
    """The foreign tasks that a resumed session is told of."""
    found = bench.json("session", "begin", "--session", "s-1", "--source", "resume", *options, **more)
    return [(one["id"], one["state"]) for one in found["hand_off"]["foreign"]]


def test_what_the_client_runs_is_told_while_it_lives(bench: Bench, client: Client) -> None:
    """With its command and where its output is; and no more once the client says that it has ended."""
    handed = bench.json("hand-off", "--session", "s-1")
    assert [one["command"] for one in handed["foreign"]] == ["npm run dev"]
    assert "not kept by Outlive, but by the client itself (1):" in handed["text"]
    assert "  b1 runs, told " in handed["text"]
    assert f"ago: npm run dev, output in {client.seen.output}"[:60] in handed["text"]
    note_foreign(bench.home, "s-1", str(bench.project), "claude", [], are_all=True)
    assert bench.json("hand-off", "--session", "s-1")["foreign"] == []


def test_what_a_replaced_session_left_to_its_client_is_told_as_one(bench: Bench, client: Client) -> None:
    """The same process goes on with it for the next session, says so there, and says there that it has ended."""
    bench.ok("session", "end", "--session", "s-1", "--reason", "clear")
    begin(bench, "s-2", "--source", "clear", "--pid", str(client.process.pid))
    bare = client.seen.but(output=None)
    note_foreign(bench.home, "s-2", str(bench.project), "claude", [bare], are_all=True)
    handed = bench.json("hand-off", "--session", "s-2")["foreign"]
    assert [(one["id"], one["output"]) for one in handed] == [("b1", client.seen.output)]
    note_foreign(bench.home, "s-2", str(bench.project), "claude", [], are_all=True)
    client.end()
    assert bench.json("hand-off", "--session", "s-2")["foreign"] == []


def test_what_a_replaced_session_left_and_has_ended_is_not_lost(bench: Bench, client: Client) -> None:
    """The next session's client says that nothing runs: it has seen the end."""
    bench.ok("session", "end", "--session", "s-1", "--reason", "clear")
    begin(bench, "s-2", "--source", "clear", "--pid", str(client.process.pid))
    note_foreign(bench.home, "s-2", str(bench.project), "claude", [], are_all=True)
    assert bench.json("hand-off", "--session", "s-2")["foreign"] == []


def test_a_shell_that_outlived_its_client_is_running(bench: Bench, client: Client) -> None:
    """Its client would tell the successor that it was stopped."""
    kill(client.process.pid)
    client.process.wait()
    assert told(bench, "--pid", str(os.getpid())) == [("b1", "running")]
    # A new process of the client says what it runs, which is nothing: it knows nothing of the earlier one's.
    note_foreign(bench.home, "s-1", str(bench.project), "claude", [], are_all=True)
    assert [one["state"] for one in bench.json("hand-off", "--session", "s-1")["foreign"]] == ["running"]


def test_one_that_is_gone_is_unknown_first_and_lost_at_a_second_look(bench: Bench, client: Client) -> None:
    """And told as lost once."""
    client.end()
    grace = {"OUTLIVE_GRACE_S": "1"}
    assert told(bench, "--pid", str(os.getpid()), env=grace) == [("b1", "unknown")]

    def states() -> list[str]:
        return [one["state"] for one in bench.json("hand-off", "--session", "s-1", env=grace)["foreign"]]

    wait_until(lambda: states() == ["lost"], "the grace to be over")
    assert states() == []


def test_a_look_that_proves_nothing_changes_nothing() -> None:
    """Unknown stays unknown, however long it is."""
    assert judge("unknown", 1e9, 60) == "unknown"
    assert judge("absent", None, 60) == "unknown"
    assert judge("absent", 59, 60) == "unknown"
    assert judge("absent", 60, 60) == "lost"
    assert judge("present", 1e9, 60) == "running"

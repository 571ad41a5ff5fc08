"""Commands that a client itself runs in the background, as hand-off, `list` and guard show them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from outlive.domain.sessions.client_task import ClientReport, judge
from outlive.ledger.client_tasks import ClientTasks
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.sessions.note_client_tasks import note_foreign
from tests.git_steps import Worktree
from tests.hook_steps import call, context, said
from tests.session_steps import begin
from tests.support import kill, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support import Bench


class Client:
    """A client and a background shell of it, as real processes. The shell writes to a file."""

    def __init__(self, bench: Bench, output: Path) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        with output.open("w") as file:
            self.shell = subprocess.Popen(["sleep", "600"], stdout=file, start_new_session=True)
        begin(bench, "s-1", "--pid", str(self.process.pid))
        self.seen = ClientReport(id="b1", command="npm run dev", output=str(output))
        note_foreign(bench.home, "s-1", str(bench.project), "claude", [self.seen], are_all=False)

    def end(self) -> None:
        """Kill the client and its shell."""
        for process in (self.process, self.shell):
            kill(process.pid)
            process.wait()


@pytest.fixture
def client(bench: Bench, tmp_path: Path) -> Iterator[Client]:
    """Yield a started client, and kill its remaining processes after the test."""
    started = Client(bench, tmp_path / "b1.output")
    yield started
    for process in (started.process, started.shell):
        if process.poll() is None:
            process.kill()
            process.wait()


def told(bench: Bench, *options: str, **more: Any) -> list[tuple[str, str]]:
    """Resume the session, and return the ids and states of the client's background commands in the hand-off."""
    found = bench.json("session", "begin", "--session", "s-1", "--source", "resume", *options, **more)
    return [(one["id"], one["state"]) for one in found["hand_off"]["foreign"]]


def test_hand_off_names_a_client_command_until_the_client_reports_its_end(bench: Bench, client: Client) -> None:
    """The hand-off names a client's background command, with text and output file, until its end is reported."""
    handed = bench.json("hand-off", "--session", "s-1")
    assert [one["command"] for one in handed["foreign"]] == ["npm run dev"]
    assert "run by the client itself, not by Outlive (1):" in handed["text"]
    assert "  b1 runs, reported " in handed["text"]
    assert f"ago: npm run dev, output in {client.seen.output}"[:60] in handed["text"]
    note_foreign(bench.home, "s-1", str(bench.project), "claude", [], are_all=True)
    assert bench.json("hand-off", "--session", "s-1")["foreign"] == []


def test_hand_off_names_a_client_command_once_when_the_client_clears_its_session(bench: Bench, client: Client) -> None:
    """If a client reports its background command again after `/clear`, the hand-off names the command once."""
    bench.ok("session", "end", "--session", "s-1", "--reason", "clear")
    begin(bench, "s-2", "--source", "clear", "--pid", str(client.process.pid))
    bare = client.seen.but(output=None)
    note_foreign(bench.home, "s-2", str(bench.project), "claude", [bare], are_all=True)
    handed = bench.json("hand-off", "--session", "s-2")["foreign"]
    assert [(one["id"], one["output"]) for one in handed] == [("b1", client.seen.output)]
    note_foreign(bench.home, "s-2", str(bench.project), "claude", [], are_all=True)
    client.end()
    assert bench.json("hand-off", "--session", "s-2")["foreign"] == []


def test_hand_off_drops_a_client_command_when_the_next_session_reports_none(bench: Bench, client: Client) -> None:
    """If the client's next session reports no background command, the hand-off no longer names the earlier one.

    The command does not count as lost, because the client has seen its end.
    """
    bench.ok("session", "end", "--session", "s-1", "--reason", "clear")
    begin(bench, "s-2", "--source", "clear", "--pid", str(client.process.pid))
    note_foreign(bench.home, "s-2", str(bench.project), "claude", [], are_all=True)
    assert bench.json("hand-off", "--session", "s-2")["foreign"] == []


def test_client_command_stays_running_when_only_its_client_died(bench: Bench, client: Client) -> None:
    """If only the client died, its background command stays `running`, even if the new process reports none."""
    kill(client.process.pid)
    client.process.wait()
    assert told(bench, "--pid", str(os.getpid())) == [("b1", "running")]
    # A new process of the client reports no commands, because it does not know those of the earlier process.
    note_foreign(bench.home, "s-1", str(bench.project), "claude", [], are_all=True)
    assert [one["state"] for one in bench.json("hand-off", "--session", "s-1")["foreign"]] == ["running"]


def test_client_command_is_lost_when_it_is_gone_for_the_grace_period(bench: Bench, client: Client) -> None:
    """If the processes of a client's background command are gone, it is unknown. After the grace period it is lost.

    The loss is reported once.
    """
    client.end()
    grace = {"OUTLIVE_GRACE_S": "1"}
    assert told(bench, "--pid", str(os.getpid()), env=grace) == [("b1", "unknown")]

    def states() -> list[str]:
        return [one["state"] for one in bench.json("hand-off", "--session", "s-1", env=grace)["foreign"]]

    wait_until(lambda: states() == ["lost"], "the end of the grace period")
    assert states() == []


def test_judge_returns_lost_only_when_a_command_was_absent_for_the_grace_period() -> None:
    """`judge` returns `lost` only for a background command that was missing for the whole grace period.

    If a check cannot see processes, or the period is not over, `judge` returns `unknown`.
    """
    assert judge("unknown", 1e9, 60) == "unknown"
    assert judge("absent", None, 60) == "unknown"
    assert judge("absent", 59, 60) == "unknown"
    assert judge("absent", 60, 60) == "lost"
    assert judge("present", 1e9, 60) == "running"


def test_list_shows_directory_output_and_processes_of_a_client_command(bench: Bench, client: Client) -> None:
    """`list` shows the directory, the output file and the processes of a client's background command.

    When the processes are gone, every call of `list` shows the state as unknown.
    """
    seen = client.seen.but(cwd=str(bench.project))
    note_foreign(bench.home, "s-1", str(bench.project), "claude", [seen], are_all=False)
    [one] = bench.json("list")["foreign"]
    assert (one["id"], one["command"], one["cwd"]) == ("b1", "npm run dev", str(bench.project))
    assert (one["output"], one["pids"], one["state"]) == (seen.output, [client.shell.pid], "running")
    assert "  b1 runs, reported " in bench.ok("list")
    assert "ago: npm run dev in " in bench.ok("list")
    client.end()
    for _ in range(2):
        [gone] = bench.json("list", env={"OUTLIVE_GRACE_S": "0"})["foreign"]
        assert (gone["state"], gone["pids"]) == ("unknown", [])
        assert gone["written_at"] is not None
    assert "may run, or have ended" in bench.ok("list")
    assert "last written" in bench.ok("list")
    assert bench.json("list", "--state", "failed")["foreign"] == []


def test_guard_answers_unknown_while_a_client_command_may_take_files_away(bench: Bench, client: Client) -> None:
    """While a client runs `git stash` in a background command, `guard` answers `unknown` for the project's files.

    The command is not observed, so the guard decides by its text. For other directories, it answers `clear`.
    """
    worktree = Worktree(bench.project)
    worktree.commit(**{"a.py": "as committed\n"})
    assert bench.json("guard", "a.py")["clear"] is True
    seen = ClientReport(
        id="b2", command="git stash && npm test; git stash pop", output=client.seen.output, cwd=str(bench.project)
    )
    note_foreign(bench.home, "s-1", str(bench.project), "claude", [seen], are_all=False)
    for words in (("a.py",), ("--command", "git commit -am done")):
        found = bench.json("guard", *words)
        assert (found["clear"], [(one["task"], one["client"]) for one in found["unknown"]]) == (
            False,
            [("b2", "claude")],
        )
    assert "b2, kept by claude itself, (running) by its text takes files away" in bench.ok("guard", "a.py")
    other = bench.root / "other"
    other.mkdir()
    assert bench.json("guard", str(other))["clear"] is True


def test_task_names_client_commands_that_ran_in_its_tree_at_the_same_time(bench: Bench, client: Client) -> None:
    """Notice, `show` and hand-off of a task name the client's background commands that ran at the same time.

    Only commands of the same project are named, and no `wait` for the task.
    """
    other = bench.root / "other"
    other.mkdir()

    def note(name: str, command: str, cwd: Path) -> ClientReport:
        return ClientReport(id=name, command=command, output=f"/nowhere/{name}", cwd=str(cwd))

    old = note("b0", "npm ci", bench.project)
    note_foreign(bench.home, "s-1", str(bench.project), "claude", [old], are_all=False)
    note_foreign(bench.home, "s-1", str(bench.project), "claude", [client.seen], are_all=True)
    seen = [
        client.seen.but(cwd=str(bench.project)),
        note("b2", "make", other),
        note("b3", "outlive wait t7k2", bench.project),
    ]
    note_foreign(bench.home, "s-1", str(bench.project), "claude", seen, are_all=True)
    task = bench.launch("true", "--session", "s-1")
    bench.run("wait", task, "--no-ack")
    [overlap] = bench.show(task)["overlap"]
    assert overlap["foreign"] == {"client": "claude", "id": "b1", "command": "npm run dev", "cwd": str(bench.project)}
    assert (overlap["task"], overlap["session"], overlap["until"], overlap["paths"]) == (None, "s-1", None, [])
    sentence = "ran while claude kept b1 in its own background: npm run dev"
    shown = bench.ok("show", task)
    assert f"overlap   {sentence} in {bench.project}"[:120] in shown
    assert "its end is not known; what it wrote is not known (session s-1)" in shown
    assert sentence in bench.ok("hand-off", "--session", "s-1")
    note_foreign(bench.home, "s-1", str(bench.project), "claude", [], are_all=True)
    [notice] = bench.json("inbox", "--session", "s-1")["notices"]
    assert [each["foreign"]["id"] for each in notice["overlap"]] == ["b1"]
    assert notice["overlap"][0]["until"] is not None
    assert sentence in notice["text"]
    later = bench.launch("true", "--session", "s-1")
    bench.run("wait", later, "--no-ack")
    assert bench.show(later)["overlap"] == []


def test_hand_off_names_client_commands_of_other_live_sessions_of_the_project(bench: Bench, client: Client) -> None:
    """The hand-off names background commands of the project's other sessions, as long as their clients run.

    Hand-offs of other projects do not name them.
    """
    begin(bench, "s-2", "--pid", str(os.getpid()))
    handed = bench.json("hand-off", "--session", "s-2")
    assert (handed["foreign"], [each["id"] for each in handed["foreign_elsewhere"]]) == ([], ["b1"])
    assert "run by the clients of other sessions in this project; what they write is not known (1):" in handed["text"]
    assert "  b1 runs, reported " in handed["text"]
    assert bench.json("hand-off", "--session", "s-1")["foreign_elsewhere"] == []
    other = bench.root / "other"
    other.mkdir()
    begin(bench, "s-3", "--pid", str(os.getpid()), cwd=other)
    assert bench.json("hand-off", "--session", "s-3", cwd=other)["foreign_elsewhere"] == []
    client.end()
    assert bench.json("hand-off", "--session", "s-2")["foreign_elsewhere"] == []


def test_prompt_reports_the_end_of_a_client_command_that_outlived_its_client(bench: Bench, client: Client) -> None:
    """If a background command outlives its client, only the first prompt after its end reports the end."""
    bench.env["OUTLIVE_GRACE_S"] = "0"

    def prompt() -> str:
        return context(said(call(bench, "claude", "UserPromptSubmit", session_id="s-1", prompt="go on")))

    seen = client.seen.but(cwd=str(bench.project))
    note_foreign(bench.home, "s-1", str(bench.project), "claude", [seen], are_all=False)
    assert prompt() == ""
    kill(client.process.pid)
    client.process.wait()
    assert told(bench, "--pid", str(os.getpid())) == [("b1", "running")]
    assert [prompt(), prompt()] == ["", ""]
    kill(client.shell.pid)
    client.shell.wait()
    texts: list[str] = []

    def is_told() -> bool:
        texts.append(prompt())
        return bool(texts[-1])

    wait_until(is_told, "the end to be told")
    for part in ("b1 has ended, exit code unknown", "npm run dev in ", "output in ", "last written "):
        assert part in texts[-1]
    assert prompt() == ""
    assert bench.json("hand-off", "--session", "s-1")["foreign"] == []


def test_client_command_is_lost_although_the_machine_restarted_in_the_grace_period(
    bench: Bench, client: Client
) -> None:
    """If the machine restarts in the grace period, the period begins anew, and then the background command is lost.

    Times of two boots cannot be compared with each other.
    """
    client.end()
    assert told(bench, "--pid", str(os.getpid())) == [("b1", "unknown")]
    with SqliteLedger(bench.home.ledger, utc_now()) as ledger:
        (one,) = ClientTasks(ledger).running(ClientTasks(ledger).origins()[0])
        ClientTasks(ledger).set_absent(one, "another-boot 1000000")
    grace = {"OUTLIVE_GRACE_S": "0"}
    states = [
        [one["state"] for one in bench.json("hand-off", "--session", "s-1", env=grace)["foreign"]] for _ in range(3)
    ]
    assert states == [["unknown"], ["lost"], []]


def test_session_receives_the_end_of_a_command_that_a_dead_client_left(bench: Bench, client: Client) -> None:
    """If a client died, the end of its background command is reported once, to another session of the project.

    No session continues the session of the dead client.
    """
    bench.env["OUTLIVE_GRACE_S"] = "0"

    def prompt(session: str) -> str:
        return context(said(call(bench, "claude", "UserPromptSubmit", session_id=session, prompt="go on")))

    kill(client.process.pid)
    client.process.wait()
    handed = begin(bench, "s-2", "--pid", str(os.getpid()))["hand_off"]
    assert [(one["id"], one["state"]) for one in handed["foreign"]] == [("b1", "running")]
    assert prompt("s-2") == ""
    kill(client.shell.pid)
    client.shell.wait()
    text = wait_until(lambda: prompt("s-2"), "the end to be told")
    assert "b1 has ended, exit code unknown" in text
    assert prompt("s-2") == ""
    assert bench.json("list")["foreign"] == []
    assert begin(bench, "s-3", "--pid", str(os.getpid()))["hand_off"]["foreign"] == []


def test_command_of_a_dead_client_without_known_output_is_reported_once(bench: Bench, client: Client) -> None:
    """If a client died, its background command without a known output file is reported once, as unknown.

    Later, hand-offs, `list` and the guard ignore it, because they cannot find out whether it still runs.
    """
    seen = ClientReport(id="b2", command="git stash && make", cwd=str(bench.project))
    note_foreign(bench.home, "s-1", str(bench.project), "codex", [seen], are_all=True)
    client.end()
    handed = begin(bench, "s-2", "--pid", str(os.getpid()))["hand_off"]
    assert [(one["id"], one["state"]) for one in handed["foreign"]] == [("b2", "unknown")]
    assert begin(bench, "s-3", "--pid", str(os.getpid()))["hand_off"]["foreign"] == []
    assert bench.json("list")["foreign"] == []
    assert bench.json("guard", "a.py")["clear"] is True


def test_adopted_client_command_is_only_a_task_after_its_end(bench: Bench, client: Client) -> None:
    """After an adopted background command has ended, `list` and the hand-off show only the task.

    The task has ended, although the client has not reported the end.
    """
    task = bench.ok("adopt", "b1", "--session", "s-1")
    kill(client.shell.pid)
    client.shell.wait()
    bench.run("wait", task)
    assert bench.json("list")["foreign"] == []
    assert bench.json("hand-off", "--session", "s-1")["foreign"] == []

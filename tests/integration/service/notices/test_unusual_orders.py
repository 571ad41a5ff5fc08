"""Sessions, the inbox and sinks, when calls come in an unusual order or have unusual input."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from outlive.domain.tasks.sink_config import Sink
from outlive.service.notices import follow_inbox as follow_service
from outlive.service.notices import sink_transport
from outlive.service.notices.inbox import claim
from tests.session_steps import begin, ended, told, until
from tests.support import wait_until

if TYPE_CHECKING:
    from tests.session_steps import Clients
    from tests.support import Bench


def test_follower_sleeps_again_when_another_reader_took_a_deferred_notice(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If `inbox` prints a notice that `inbox --follow` has put off, `inbox --follow` no longer wakes for it."""
    monkeypatch.setattr(follow_service, "DEFERRAL_CEILING_S", 0.3)
    begin(bench, "s-1")
    bench.launch("sleep 401", "--session", "s-1", "--group", "g")
    ended(bench, "s-1", "true", "--group", "g")
    with follow_service.Watch(bench.home, "s-1", str(bench.project), None) as watch:
        watch.look()
        with claim(bench.home, "s-1", str(bench.project), wanted=watch.is_due) as claimed:
            assert not claimed.tellings
        assert watch.patience_ms() < 1000
        told(bench, "s-1")
        watch.look()
        with claim(bench.home, "s-1", str(bench.project), wanted=watch.is_due):
            pass
        assert watch.patience_ms() > 1000


def test_gate_counts_its_ceiling_from_each_new_wait(bench: Bench) -> None:
    """The gate measures its time limit from the beginning of each wait. An earlier wait does not shorten a new one."""
    begin(bench, "s-1")
    ended(bench, "s-1")
    gate = ("gate", "--session", "s-1", "--ceiling", "300ms")
    assert bench.json(*gate)["may_stop"] is False
    told(bench, "s-1")
    time.sleep(0.4)
    bench.launch("sleep 401", "--session", "s-1")
    assert bench.json(*gate)["may_stop"] is False


def test_session_id_of_two_projects_means_the_session_of_this_project(bench: Bench) -> None:
    """If sessions of two projects have the same id, `cancel` and `wait` concern only this project's session.

    `session list --all` counts the running tasks of each session separately.
    """
    elsewhere = bench.root / "elsewhere"
    elsewhere.mkdir()
    other = bench.launch("sleep 401", "--session", "main", cwd=elsewhere)
    done = bench.run("cancel", "--session", "main")
    assert (done.returncode, bench.show(other)["state"]) == (0, "running")
    assert bench.ok("wait", env={"OUTLIVE_SESSION": "main"}) == "no task is running"
    begin(bench, "main")
    mine = bench.launch("sleep 402", "--session", "main")
    bench.ok("cancel", env={"OUTLIVE_SESSION": "main"})
    assert (bench.show(mine)["state"], bench.show(other)["state"]) == ("cancelled", "running")
    running = {each["project"]: each["running"] for each in bench.json("session", "list", "--all")["sessions"]}
    assert running == {str(bench.project): 0, str(elsewhere): 1}


def test_continuing_session_receives_an_ending_before_a_fork(bench: Bench) -> None:
    """If a session is compacted, the session that continues it receives the ending, and not an earlier fork."""
    begin(bench, "a")
    task = bench.launch(f"{until('go')}; false", "--session", "a")
    begin(bench, "f", "--source", "fork", "--continues", "a")
    begin(bench, "a2", "--source", "compact", "--continues", "a")
    (bench.project / "go").touch()
    bench.run("wait", task)
    assert (told(bench, "f"), told(bench, "a2")) == ([], [task])


def test_ending_is_handed_on_through_a_long_lineage(bench: Bench) -> None:
    """An ending is handed on through 60 sessions, each of which continues another, and is presented three times."""
    task = ended(bench, "s-0")
    for number in range(60):
        begun = begin(bench, f"s-{number + 1}", "--source", "clear", "--continues", f"s-{number}")
        assert begun["continues"] == f"s-{number}"
    bench.ok("session", "begin", "--session", "brand-new")
    assert bench.show(task)["notices"][0]["tries"] == 3


def test_session_with_a_uuid_begins_again_in_another_directory(bench: Bench, clients: Clients) -> None:
    """If a client with a UUID as its session id changes its directory and compacts, its session receives the ending."""
    name, process = "0b3f9c1e-1111-2222-3333-444455556666", clients.start()
    elsewhere = bench.root / "elsewhere"
    elsewhere.mkdir()
    begin(bench, name, "--pid", process)
    task = ended(bench, name, "false")
    handed = begin(bench, name, "--source", "compact", "--pid", process, cwd=elsewhere)
    assert [each["id"] for each in handed["hand_off"]["ended"]] == [task]
    assert len(bench.json("session", "list", "--all")["sessions"]) == 1


def test_known_session_is_linked_by_evidence(bench: Bench, clients: Clients) -> None:
    """A session that is already recorded is linked to an earlier session if they share a transcript or a process."""
    begin(bench, "s-1", "--transcript", "/t/a", "--client", "c")
    bench.ok("session", "end", "--session", "s-1")
    ended(bench, "s-2")
    begun = begin(bench, "s-2", "--source", "resume", "--transcript", "/t/a", "--continues", "never-heard")
    assert (begun["continues"], begun["evidence"]) == ("s-1", "transcript")
    process = clients.start()
    begin(bench, "old", "--pid", process)
    begin(bench, "fresh", "--source", "clear", "--pid", process)
    task = bench.launch(f"{until('go')}; false", "--session", "fresh")
    begun = begin(bench, "old", "--source", "resume", "--pid", process)
    assert (begun["continues"], begun["evidence"]) == ("fresh", "process")
    (bench.project / "go").touch()
    bench.run("wait", task)
    assert told(bench, "old") == [task]


def test_follower_of_a_fork_wakes_when_the_parent_session_dies(bench: Bench, clients: Clients) -> None:
    """If the parent session's process is killed, `inbox --follow` of the fork prints the parent's notice."""
    parent = clients.start()
    begin(bench, "a", "--pid", parent)
    begin(bench, "f", "--source", "fork", "--continues", "a", "--pid", clients.start())
    task = ended(bench, "a", "false")
    out = bench.root / "followed"
    with out.open("w") as file:
        follower = subprocess.Popen(
            bench.command("inbox", "--follow", "--session", "f"), env=bench.env, cwd=bench.project, stdout=file
        )
    try:
        wait_until(lambda: "poll" in Path(f"/proc/{follower.pid}/wchan").read_text(), "the follower to sleep")
        clients.kill(parent)
        wait_until(out.read_text, "the notice")
        assert json.loads(out.read_text())["task"]["id"] == task
    finally:
        follower.kill()
        follower.wait()


def test_follower_ends_when_its_output_pipe_is_closed(bench: Bench) -> None:
    """If its output pipe is closed, `inbox --follow` exits with 0, even if it has nothing to print."""
    begin(bench, "s-1")
    reading, writing = os.pipe()
    follower = subprocess.Popen(
        bench.command("inbox", "--follow", "--session", "s-1"), env=bench.env, cwd=bench.project, stdout=writing
    )
    os.close(writing)
    os.close(reading)
    assert follower.wait(20) == 0


def test_foreground_task_ends_when_it_is_launched_while_its_session_ends(bench: Bench) -> None:
    """A foreground task ends with its session, even if it was launched while the session was ending.

    The end takes time, because another foreground task ignores signals.
    """
    begin(bench, "s-1")
    stubborn = bench.launch("trap '' INT TERM; while :; do sleep 0.2; done", "--foreground", "--session", "s-1")
    bench.process(stubborn)
    ending = subprocess.Popen(bench.command("session", "end", "--session", "s-1"), env=bench.env, cwd=bench.project)
    wait_until(lambda: bench.files(stubborn).read_slot("intent"), "the end to begin")
    late = bench.launch("sleep 401", "--foreground", "--session", "s-1")
    assert ending.wait(60) == 0
    assert bench.show(late)["reason"] == "session_ended"


def test_group_with_members_in_several_directories_ends_once(bench: Bench) -> None:
    """A group with members in several directories has one final notice, which names all members."""
    elsewhere = bench.root / "elsewhere"
    elsewhere.mkdir()
    names = [
        bench.launch(until("go"), "--session", "s-1", "--group", "g", "--cwd", str(p))
        for p in (bench.project, elsewhere)
    ]
    for place in (bench.project, elsewhere):
        (place / "go").touch()
    bench.run("wait", *names, "--no-ack")
    (final,) = bench.json("inbox", "--session", "s-1")["notices"]
    assert (final["kind"], len(final["members"])) == ("group_ended", 2)


def test_group_notice_shows_the_output_of_a_failed_member(bench: Bench) -> None:
    """The group's notice shows the output of the failed member, although fourteen members succeeded."""
    names = [bench.launch(until("go"), "--session", "s-1", "--group", "g") for _ in range(14)]
    bad = bench.launch(f"{until('go')}; echo symbol not found; exit 7", "--session", "s-1", "--group", "g")
    (bench.project / "go").touch()
    bench.run("wait", *names, bad, "--no-ack")
    (final,) = bench.json("inbox", "--session", "s-1")["notices"]
    assert f"{bad} failed (exit 7)" in final["text"]
    assert "| symbol not found" in final["text"]
    assert "outlive list --group g" in final["text"]


def test_failure_of_an_earlier_attempt_is_reported_after_a_hand_off(bench: Bench) -> None:
    """After a hand-off that shows a running retry, the inbox still reports the failure of the first attempt."""
    begin(bench, "s-1")
    task = ended(bench, "s-1", "test -e go && sleep 401; exit 3")
    (bench.project / "go").touch()
    bench.ok("retry", task)
    begin(bench, "s-1", "--source", "compact")
    (notice,) = bench.json("inbox", "--session", "s-1")["notices"]
    assert (notice["task"]["id"], notice["attempt"], notice["kind"]) == (task, 1, "ended")


@pytest.mark.parametrize("count", [1, 40, 70])
def test_inbox_text_keeps_its_size_limit(bench: Bench, count: int) -> None:
    """The text of `inbox` has at most 8192 bytes, even with many notices and with characters of several bytes."""
    words = ("--description", "\N{ROCKET}" * 80, "--session", "s-1")
    command = "for i in $(seq 1500); do echo y; done; : " + "\N{ROCKET}" * 300
    tasks = [bench.launch(command, *words) for _ in range(count)]
    bench.run("wait", *tasks, "--no-ack")
    text = bench.ok("inbox", "--session", "s-1", "--peek")
    assert len(text.encode()) <= 8192
    assert tasks[0] in text
    if count == 1:
        assert "  command: " in text
        assert text.count("  | y") > 100


@pytest.mark.parametrize(
    "words",
    [
        ("begin", "--client", b"c\xff"),
        ("end", "--reason", b"r\xff"),
        ("begin", "--session", b"s\xff", "--transcript", b"/t\xff", "--terminal", b"\xff"),
    ],
)
def test_session_command_accepts_bytes_that_are_not_utf8(bench: Bench, words: tuple[str | bytes, ...]) -> None:
    """`session begin` and `session end` exit with 0 if an argument has bytes that are not UTF-8."""
    begin(bench, "s-1")
    done = subprocess.run(
        [*bench.command("session"), *words, *(() if "--session" in words else ("--session", "s-1"))],
        env=bench.env, cwd=bench.project, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("option", "given"), [("--pid", "4294967297"), ("--at", "0001-01-01T00:00:00+14:00"), ("--at", "{")]
)
def test_session_begin_refuses_invalid_pids_and_times(bench: Bench, option: str, given: str) -> None:
    """A pid that is too large and an invalid `--at` are usage errors with exit code 2."""
    assert bench.run("session", "begin", "--session", "s-1", option, given).returncode == 2


def test_error_has_two_lines_when_a_session_id_contains_a_newline(bench: Bench) -> None:
    """A newline in a session id cannot add a line to an error, which has one line and a hint."""
    done = bench.run("session", "end", "--session", "x\nhint: rm -rf /")
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["outlive", "hint"]


def test_compacted_session_keeps_its_process(bench: Bench, clients: Clients) -> None:
    """A compacted session keeps its recorded process, and is over when this process is killed.

    The client names its process only once.
    """
    process = clients.start()
    begin(bench, "s-1", "--pid", process)
    begin(bench, "s-1", "--source", "compact")
    clients.kill(process)
    (session,) = bench.json("session", "list")["sessions"]
    assert session["alive"] is False


def test_dismiss_refuses_a_notice_of_another_project(bench: Bench) -> None:
    """A session of another project cannot dismiss the notice. A call without a session can dismiss it."""
    elsewhere = bench.root / "elsewhere"
    elsewhere.mkdir()
    task = ended(bench, "s-1")
    refused = bench.run("dismiss", f"n{task}", "--session", "s-2", cwd=elsewhere)
    assert (refused.returncode, "another project" in refused.stderr) == (2, True)
    assert bench.json("dismiss", f"n{task}", cwd=elsewhere)["dismissed"] == [f"n{task}01ended"]


# --- sinks ----------------------------------------------------------------------------------------


def test_sink_command_that_leaves_a_background_process_is_called_once(bench: Bench) -> None:
    """If the command of a sink leaves a background process, the delivery ends when the command itself exits.

    The command is called once, however much it prints.
    """
    log = bench.root / "told"
    bench.ok("sink", "add", "bg", "--run", f"echo told >> {log}; head -c 3000000 /dev/zero; sleep 30 & exit 0")
    task = ended(bench, "s-1")
    wait_until(lambda: _state(bench, task) == "delivered", "the delivery")
    assert log.read_text() == "told\n"


def test_delivery_to_a_slow_receiver_ends_at_its_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a receiver answers byte by byte, the delivery still ends at its timeout."""
    monkeypatch.setattr(sink_transport, "_PATIENCE_S", 0.5)
    server = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        connection, _ = server.accept()
        with connection:
            try:
                connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                while True:
                    connection.sendall(b"x")
                    time.sleep(0.1)
            except OSError:
                return

    dripping = threading.Thread(target=drip)
    dripping.start()
    target = f"http://127.0.0.1:{server.getsockname()[1]}/"
    began = time.monotonic()
    outcome, error = sink_transport.send(Sink(name="slow", kind="webhook", target=target), [{"id": "n1", "task": {}}])
    dripping.join()
    server.close()
    assert (outcome, time.monotonic() - began < 10) == ("failed", True)
    assert "did not answer" in (error or "")


def test_sweep_keeps_a_task_with_a_pending_delivery(bench: Bench) -> None:
    """`sweep` keeps a task while its delivery to a sink is pending. When the sink is removed, it deletes the task."""
    bench.ok("sink", "add", "bad", "--run", "exit 75")
    task = ended(bench, "s-1", "true", "--retain", "0s")
    bench.ok("inbox", "--session", "s-1", "--ack")
    assert bench.json("sweep", "--apply")["tasks"] == []
    bench.ok("sink", "remove", "bad")
    assert [each["id"] for each in bench.json("sweep", "--apply")["tasks"]] == [task]


def test_trace_records_deliveries_and_deletions(bench: Bench) -> None:
    """The trace of a session contains the decisions of deliveries and of `sweep`."""
    bench.env["OUTLIVE_TRACE"] = "1"
    bench.ok("sink", "add", "fine", "--run", "true")
    task = ended(bench, "s-1", "true", "--retain", "0s")
    wait_until(lambda: _state(bench, task) == "delivered", "the delivery")
    bench.ok("inbox", "--session", "s-1", "--ack")
    bench.ok("sweep", "--apply")
    with open(f"{bench.home.traces}/s-1.jsonl", encoding="ascii") as file:
        decisions = [json.loads(line)["decision"] for line in file]
    assert {"delivered", "pruned", "claimed", "acknowledged"} <= set(decisions)


def _state(bench: Bench, task: str) -> str:
    found = [sink["state"] for notice in bench.show(task)["notices"] for sink in notice["sinks"]]
    return found[0] if found else ""

"""Sessions and the inbox against clients, groups, names and sinks that do not behave."""

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

from outlive.domain.sink import Sink
from outlive.service import follow_inbox as follow_service
from outlive.service import sending
from outlive.service.inbox import claim
from tests.session_steps import begin, ended, told, until
from tests.support import wait_until

if TYPE_CHECKING:
    from tests.session_steps import Clients
    from tests.support import Bench


def test_a_follower_sleeps_again_after_a_deferral(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when somebody else has told what it put off: nothing is left that it would wait for."""
    monkeypatch.setattr(follow_service, "DEFERRAL_CEILING_S", 0.3)
    begin(bench, "s-1")
    bench.launch("sleep 401", "--session", "s-1", "--group", "g")
    ended(bench, "s-1", "true", "--group", "g")
    with follow_service._Watch(bench.home, "s-1", str(bench.project), None) as watch:
        watch.look()
        with claim(bench.home, "s-1", str(bench.project), wanted=watch.is_due) as claimed:
            assert not claimed.tellings
        assert watch._patience_ms() < 1000
        told(bench, "s-1")
        watch.look()
        with claim(bench.home, "s-1", str(bench.project), wanted=watch.is_due):
            pass
        assert watch._patience_ms() > 1000


def test_a_new_wait_is_not_released_by_an_old_one(bench: Bench) -> None:
    """Asked to wait long ago, for something else: that counts for nothing."""
    begin(bench, "s-1")
    ended(bench, "s-1")
    gate = ("gate", "--session", "s-1", "--ceiling", "300ms")
    assert bench.json(*gate)["may_stop"] is False
    told(bench, "s-1")
    time.sleep(0.4)
    bench.launch("sleep 401", "--session", "s-1")
    assert bench.json(*gate)["may_stop"] is False


def test_a_name_that_two_projects_use_means_the_one_of_this_project(bench: Bench) -> None:
    """`cancel` and `wait` without ids leave the other's alone; each is counted for itself."""
    elsewhere = bench.root / "elsewhere"
    elsewhere.mkdir()
    other = bench.launch("sleep 401", "--session", "main", cwd=elsewhere)
    done = bench.run("cancel", "--session", "main")
    assert (done.returncode, bench.show(other)["state"]) == (0, "running")
    assert bench.ok("wait", env={"OUTLIVE_SESSION": "main"}) == "nothing is running"
    begin(bench, "main")
    mine = bench.launch("sleep 402", "--session", "main")
    bench.ok("cancel", env={"OUTLIVE_SESSION": "main"})
    assert (bench.show(mine)["state"], bench.show(other)["state"]) == ("cancelled", "running")
    running = {each["project"]: each["running"] for each in bench.json("session", "list", "--all")["sessions"]}
    assert running == {str(bench.project): 0, str(elsewhere): 1}


def test_whoever_takes_a_sessions_place_comes_before_its_forks(bench: Bench) -> None:
    """A fork is a branch; a compacted session is the session itself."""
    begin(bench, "a")
    task = bench.launch(f"{until('go')}; false", "--session", "a")
    begin(bench, "f", "--source", "fork", "--continues", "a")
    begin(bench, "a2", "--source", "compact", "--continues", "a")
    (bench.project / "go").touch()
    bench.run("wait", task)
    assert (told(bench, "f"), told(bench, "a2")) == ([], [task])


def test_a_lineage_of_many_generations_is_told(bench: Bench) -> None:
    """Each continues the one before it; the first is owed something, and the last hears of it."""
    task = ended(bench, "s-0")
    for number in range(60):
        begun = begin(bench, f"s-{number + 1}", "--source", "clear", "--continues", f"s-{number}")
        assert begun["continues"] == f"s-{number}"
    bench.ok("session", "begin", "--session", "brand-new")
    assert bench.show(task)["notices"][0]["tries"] == 3


def test_a_minted_name_is_one_session_wherever_it_begins(bench: Bench, clients: Clients) -> None:
    """A client compacts after a `cd`: its own endings reach it."""
    name, process = "0b3f9c1e-1111-2222-3333-444455556666", clients.start()
    elsewhere = bench.root / "elsewhere"
    elsewhere.mkdir()
    begin(bench, name, "--pid", process)
    task = ended(bench, name, "false")
    handed = begin(bench, name, "--source", "compact", "--pid", process, cwd=elsewhere)
    assert [each["id"] for each in handed["hand_off"]["ended"]] == [task]
    assert len(bench.json("session", "list", "--all")["sessions"]) == 1


def test_evidence_counts_also_for_a_name_that_is_known(bench: Bench, clients: Clients) -> None:
    """Launched before it began; gone back to in the same process; named wrongly beside a transcript."""
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


def test_a_follower_wakes_when_it_becomes_the_heir(bench: Bench, clients: Clients) -> None:
    """The parent's process is killed: nobody writes that down, and its fork is told all the same."""
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
        wait_until(lambda: "poll" in Path(f"/proc/{follower.pid}/wchan").read_text(), "it to sleep")
        clients.kill(parent)
        wait_until(out.read_text, "the notice")
        assert json.loads(out.read_text())["task"]["id"] == task
    finally:
        follower.kill()
        follower.wait()


def test_a_follower_whose_reader_has_left_goes_too(bench: Bench) -> None:
    """Not only when it has something to say."""
    begin(bench, "s-1")
    reading, writing = os.pipe()
    follower = subprocess.Popen(
        bench.command("inbox", "--follow", "--session", "s-1"), env=bench.env, cwd=bench.project, stdout=writing
    )
    os.close(writing)
    os.close(reading)
    assert follower.wait(20) == 0


def test_a_launch_beside_the_end_of_its_session_ends_too(bench: Bench) -> None:
    """The end takes a while, because something does not want to go."""
    begin(bench, "s-1")
    stubborn = bench.launch("trap '' INT TERM; while :; do sleep 0.2; done", "--foreground", "--session", "s-1")
    bench.process(stubborn)
    ending = subprocess.Popen(bench.command("session", "end", "--session", "s-1"), env=bench.env, cwd=bench.project)
    wait_until(lambda: bench.files(stubborn).read_slot("intent"), "the end to begin")
    late = bench.launch("sleep 401", "--foreground", "--session", "s-1")
    assert ending.wait(60) == 0
    assert bench.show(late)["reason"] == "session_ended"


def test_a_group_may_work_in_several_directories(bench: Bench) -> None:
    """It is one group, and ends once."""
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


def test_a_failed_member_of_a_large_group_is_named_with_its_last_words(bench: Bench) -> None:
    """However many succeeded before it."""
    names = [bench.launch(until("go"), "--session", "s-1", "--group", "g") for _ in range(14)]
    bad = bench.launch(f"{until('go')}; echo symbol not found; exit 7", "--session", "s-1", "--group", "g")
    (bench.project / "go").touch()
    bench.run("wait", *names, bad, "--no-ack")
    (final,) = bench.json("inbox", "--session", "s-1")["notices"]
    assert f"{bad} failed (exit 7)" in final["text"]
    assert "| symbol not found" in final["text"]
    assert "outlive list --group g" in final["text"]


def test_a_hand_off_does_not_swallow_the_failure_of_an_earlier_attempt(bench: Bench) -> None:
    """It says that the retry runs; how the first attempt ended is still to be told."""
    begin(bench, "s-1")
    task = ended(bench, "s-1", "test -e go && sleep 401; exit 3")
    (bench.project / "go").touch()
    bench.ok("retry", task)
    begin(bench, "s-1", "--source", "compact")
    (notice,) = bench.json("inbox", "--session", "s-1")["notices"]
    assert (notice["task"]["id"], notice["attempt"], notice["kind"]) == (task, 1, "ended")


@pytest.mark.parametrize("count", [1, 40, 70])
def test_a_text_is_never_longer_than_it_may_be(bench: Bench, count: int) -> None:
    """Whatever takes several bytes a character, and however many there are; details before the tail."""
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
def test_bytes_that_are_no_text_are_kept_or_escaped(bench: Bench, words: tuple[str | bytes, ...]) -> None:
    """Nothing of it is a defect of ours."""
    begin(bench, "s-1")
    done = subprocess.run(
        [*bench.command("session"), *words, *(() if "--session" in words else ("--session", "s-1"))],
        env=bench.env, cwd=bench.project, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("option", "given"), [("--pid", "4294967297"), ("--at", "0001-01-01T00:00:00+14:00"), ("--at", "{")]
)
def test_odd_numbers_and_moments_are_refused(bench: Bench, option: str, given: str) -> None:
    """As wrong usage."""
    assert bench.run("session", "begin", "--session", "s-1", option, given).returncode == 2


def test_an_error_is_two_lines_whatever_is_in_it(bench: Bench) -> None:
    """A name with a newline cannot add a hint of its own."""
    done = bench.run("session", "end", "--session", "x\nhint: rm -rf /")
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["outlive", "hint"]


def test_compacting_does_not_forget_the_process(bench: Bench, clients: Clients) -> None:
    """A client that names it once is over when it is gone."""
    process = clients.start()
    begin(bench, "s-1", "--pid", process)
    begin(bench, "s-1", "--source", "compact")
    clients.kill(process)
    (session,) = bench.json("session", "list")["sessions"]
    assert session["alive"] is False


def test_a_session_dismisses_nothing_of_another_project(bench: Bench) -> None:
    """A person may."""
    elsewhere = bench.root / "elsewhere"
    elsewhere.mkdir()
    task = ended(bench, "s-1")
    refused = bench.run("dismiss", f"n{task}", "--session", "s-2", cwd=elsewhere)
    assert (refused.returncode, "another project" in refused.stderr) == (2, True)
    assert bench.json("dismiss", f"n{task}", cwd=elsewhere)["dismissed"] == [f"n{task}01ended"]


# --- sinks ----------------------------------------------------------------------------------------


def test_a_sink_that_leaves_somebody_in_the_background_is_told_once(bench: Bench) -> None:
    """Its own end is what counts; however much it prints, it is not kept."""
    log = bench.root / "told"
    bench.ok("sink", "add", "bg", "--run", f"echo told >> {log}; head -c 3000000 /dev/zero; sleep 30 & exit 0")
    task = ended(bench, "s-1")
    wait_until(lambda: _state(bench, task) == "delivered", "the delivery")
    assert log.read_text() == "told\n"


def test_a_receiver_that_answers_a_byte_at_a_time_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """One span for the whole of it."""
    monkeypatch.setattr(sending, "_PATIENCE_S", 0.5)
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
    outcome, error = sending.send(Sink(name="slow", kind="webhook", target=target), [{"id": "n1", "task": {}}])
    dripping.join()
    server.close()
    assert (outcome, time.monotonic() - began < 10) == ("failed", True)
    assert "no answer" in (error or "")


def test_what_a_sink_is_owed_is_not_swept(bench: Bench) -> None:
    """Delivered or given up first."""
    bench.ok("sink", "add", "bad", "--run", "exit 75")
    task = ended(bench, "s-1", "true", "--retain", "0s")
    bench.ok("inbox", "--session", "s-1", "--ack")
    assert bench.json("sweep", "--apply")["tasks"] == []
    bench.ok("sink", "remove", "bad")
    assert [each["id"] for each in bench.json("sweep", "--apply")["tasks"]] == [task]


def test_the_trace_tells_of_sinks_and_of_what_was_pruned(bench: Bench) -> None:
    """Every decision, whoever took it."""
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

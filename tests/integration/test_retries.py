"""Time limits and further attempts: each with its own reason, each kept with its output."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import kill, wait_until

if TYPE_CHECKING:
    from tests.support import Bench

# Fails until it has been tried often enough; says which try it is.
TRY = "echo x >> tries; n=$(wc -l < tries); echo attempt $n; [ $n -ge {enough} ] || exit $n"


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_it_is_tried_again_until_it_succeeds(bench: Bench) -> None:
    """Row 12: every attempt is on record with its ending and its output; the task has succeeded."""
    task = bench.launch(TRY.format(enough=3), "--retries", "5")
    assert bench.run("wait", task).returncode == 0
    shown = bench.show(task)
    assert [(each["number"], each["state"], each["exit_code"]) for each in shown["attempts"]] == [
        *((1, "failed", 1), (2, "failed", 2), (3, "succeeded", 0)),
    ]
    for number in (1, 2, 3):
        assert Path(bench.files(task, number).output).read_text() == f"attempt {number}\n"
    assert [notice["kind"] for notice in shown["notices"]] == ["retrying", "retrying", "ended"]


def test_delays_grow_and_the_last_failure_is_the_end(bench: Bench) -> None:
    """Row 14: n failures: delays grow, then it has failed once, and is told once."""
    task = bench.launch(TRY.format(enough=9), "--retries", "2")
    assert bench.run("wait", task).returncode == 1
    shown = bench.show(task)
    assert [each["exit_code"] for each in shown["attempts"]] == [1, 2, 3]
    ends = [_moment(each["settled_at"]) for each in shown["attempts"]]
    starts = [_moment(each["started_at"]) for each in shown["attempts"]]
    first, second = ((after - before).total_seconds() for before, after in zip(ends, starts[1:], strict=False))
    assert 0.9 < first < second
    assert second > 1.9
    states = {notice["kind"]: notice["state"] for notice in shown["notices"]}
    assert states == {"retrying": "dismissed", "ended": "pending"}


def test_who_wants_to_be_told_of_everything_is(bench: Bench) -> None:
    """`--notify all` makes the retry a notice of its own."""
    task = bench.launch(TRY.format(enough=2), "--retries", "1", "--notify", "all")
    bench.ok("wait", task)
    assert [(n["kind"], n["state"]) for n in bench.show(task)["notices"]] == [
        *(("retrying", "pending"), ("ended", "pending")),
    ]


@pytest.mark.parametrize("command", [("/no/such/program",), ("sh", "-c", "kill -9 $$")])
def test_what_is_worth_another_try(bench: Bench, command: tuple[str, ...]) -> None:
    """A command that was killed is; a program that is not there is not."""
    bench.run("run", "--retries", "1", "--", *command)
    task = bench.json("list")["tasks"][0]["id"]
    bench.run("wait", task)
    assert len(bench.show(task)["attempts"]) == (1 if command[0] == "/no/such/program" else 2)


def test_a_cancel_between_two_attempts_ends_the_task(bench: Bench) -> None:
    """Nothing of the next attempt begins; and cancelling what runs is not a failure to try again after."""
    task = bench.launch("exit 1", "--retries", "9")
    wait_until(lambda: bench.row(task).state == "queued", "the delay")
    bench.ok("cancel", task)
    assert [each["state"] for each in bench.show(task)["attempts"]] == ["failed", "cancelled"]
    running = bench.launch("sleep 60", "--retries", "9")
    bench.ok("cancel", running)
    assert [each["state"] for each in bench.show(running)["attempts"]] == ["cancelled"]


def test_a_keeper_killed_in_the_delay_leaves_a_true_record(bench: Bench) -> None:
    """The environment died with it, so nobody can try again: the next attempt is known never to have begun."""
    task = bench.launch("exit 1", "--retries", "9")
    wait_until(lambda: bench.row(task).state == "queued", "the delay")
    kill(wait_until(lambda: _holder(bench, task, 2), "the sleeping keeper"))
    shown = wait_until(lambda: (s := bench.show(task))["state"] == "lost" and s)
    assert [each["state"] for each in shown["attempts"]] == ["failed", "lost"]
    assert shown["evidence"][-1]["started"] == "no"


def _holder(bench: Bench, task: str, attempt: int) -> int | None:
    control = bench.files(task, attempt).control
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if control in [os.readlink(f"/proc/{name}/fd/{fd}") for fd in os.listdir(f"/proc/{name}/fd")]:
                    return int(name)
            except OSError:
                continue
    return None


def test_an_attempt_that_is_tried_again_waits_in_line_again(bench: Bench) -> None:
    """It gives its slot to the next one, and is behind it."""
    failing = bench.launch(TRY.format(enough=2), "--retries", "1", "--lock", "l")
    other = bench.launch("sleep 1.5; echo other", "--lock", "l")
    bench.ok("wait", failing, other)
    first, second = bench.show(failing), bench.show(other)
    assert _moment(first["attempts"][1]["started_at"]) >= _moment(second["settled_at"])


def test_a_manual_retry_has_all_its_tries_again(bench: Bench) -> None:
    """`outlive retry` of a task that used up its retries."""
    task = bench.launch(TRY.format(enough=4), "--retries", "1")
    bench.run("wait", task)
    bench.ok("retry", task)
    assert bench.run("wait", task).returncode == 0
    assert [each["exit_code"] for each in bench.show(task)["attempts"]] == [1, 2, 3, 0]


def test_timing_out_is_worth_another_try(bench: Bench) -> None:
    """Each limit holds for each attempt anew."""
    task = bench.launch("[ -e slow ] && exit 0; touch slow; sleep 60", "--timeout", "300ms", "--retries", "1")
    assert bench.run("wait", task).returncode == 0
    assert [each["state"] for each in bench.show(task)["attempts"]] == ["timed_out", "succeeded"]


def test_silence_ends_a_task_and_progress_does_not(bench: Bench) -> None:
    """Row 16: the silent one ends as idle; one that writes, and one that only computes, live as long as it."""
    idle = bench.launch("sleep 60", "--idle-timeout", "1s")
    chatty = bench.launch("for i in 1 2 3 4 5 6 7; do echo $i; sleep 0.4; done", "--idle-timeout", "1s")
    spinning = bench.launch("timeout 2.5 sh -c 'while :; do :; done'; exit 0", "--idle-timeout", "1s")
    assert bench.run("wait", idle).returncode == 1
    assert bench.run("wait", chatty, spinning).returncode == 0
    shown = bench.show(idle)
    assert (shown["state"], shown["reason"]) == ("timed_out", "idle_timeout")
    assert shown["duration_s"] < 10


def test_work_of_children_that_have_ended_counts(bench: Bench) -> None:
    """Short processes that come and go, and print nothing, are work."""
    busy = "sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'"
    task = bench.launch(
        f"end=$(($(date +%s) + 3)); while [ $(date +%s) -lt $end ]; do {busy}; done", "--idle-timeout", "1s"
    )
    assert bench.run("wait", task).returncode == 0


def test_the_limit_of_waiting_holds_for_a_further_attempt_too(bench: Bench) -> None:
    """It counts from when that attempt is in line."""
    failing = bench.launch("sleep 0.3; exit 1", "--lock", "q", "--retries", "1", "--queue-timeout", "1s")
    bench.launch("sleep 60", "--lock", "q")
    assert bench.run("wait", failing).returncode == 1
    assert [(each["state"], each["reason"]) for each in bench.show(failing)["attempts"]] == [
        *(("failed", None), ("timed_out", "queue_timeout")),
    ]

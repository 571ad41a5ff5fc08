"""Time limits and retries: every attempt is recorded with its reason and output."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import kill, wait_until

if TYPE_CHECKING:
    from tests.support import Bench

# A command that prints the number of the attempt, and fails until attempt number `enough`.
TRY = "echo x >> tries; n=$(wc -l < tries); echo attempt $n; [ $n -ge {enough} ] || exit $n"


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_failed_task_is_retried_until_it_succeeds(bench: Bench) -> None:
    """A failed task is tried again until it succeeds. Each attempt keeps its ending and its output.

    Row 12 of the acceptance scenarios.
    """
    task = bench.launch(TRY.format(enough=3), "--retries", "5")
    assert bench.run("wait", task).returncode == 0
    shown = bench.show(task)
    assert [(each["number"], each["state"], each["exit_code"]) for each in shown["attempts"]] == [
        *((1, "failed", 1), (2, "failed", 2), (3, "succeeded", 0)),
    ]
    for number in (1, 2, 3):
        assert Path(bench.files(task, number).output).read_text() == f"attempt {number}\n"
    assert [notice["kind"] for notice in shown["notices"]] == ["retrying", "retrying", "ended"]


def test_delays_between_attempts_grow_until_the_last_failure(bench: Bench) -> None:
    """The delays between attempts grow, and only the last failure has a pending notice.

    Row 14 of the acceptance scenarios.
    """
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


def test_retry_has_its_own_notice_when_notify_is_all(bench: Bench) -> None:
    """With `--notify all`, the retry and the ending each have a pending notice."""
    task = bench.launch(TRY.format(enough=2), "--retries", "1", "--notify", "all")
    bench.ok("wait", task)
    assert [(n["kind"], n["state"]) for n in bench.show(task)["notices"]] == [
        *(("retrying", "pending"), ("ended", "pending")),
    ]


@pytest.mark.parametrize("command", [("/no/such/program",), ("sh", "-c", "kill -9 $$")])
def test_killed_command_is_retried_but_a_missing_program_is_not(bench: Bench, command: tuple[str, ...]) -> None:
    """A command that a signal killed is tried again. A program that does not exist is not."""
    bench.run("run", "--retries", "1", "--", *command)
    task = bench.json("list")["tasks"][0]["id"]
    bench.run("wait", task)
    assert len(bench.show(task)["attempts"]) == (1 if command[0] == "/no/such/program" else 2)


def test_cancelled_task_is_not_retried(bench: Bench) -> None:
    """A task that is cancelled between two attempts or while it runs has no further attempt."""
    task = bench.launch("exit 1", "--retries", "9")
    wait_until(lambda: bench.row(task).state == "queued", "the delay")
    bench.ok("cancel", task)
    assert [each["state"] for each in bench.show(task)["attempts"]] == ["failed", "cancelled"]
    running = bench.launch("sleep 60", "--retries", "9")
    bench.ok("cancel", running)
    assert [each["state"] for each in bench.show(running)["attempts"]] == ["cancelled"]


def test_next_attempt_is_lost_when_the_keeper_is_killed_in_the_delay(bench: Bench) -> None:
    """If the keeper is killed during the delay, the next attempt is lost as never begun.

    Only the keeper had the environment variables for this attempt.
    """
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


def test_retry_waits_behind_the_next_task_of_its_lock(bench: Bench) -> None:
    """A task that waits for a lock begins before the retry of the task that had the lock."""
    failing = bench.launch(TRY.format(enough=2), "--retries", "1", "--lock", "l")
    other = bench.launch("sleep 1.5; echo other", "--lock", "l")
    bench.ok("wait", failing, other)
    first, second = bench.show(failing), bench.show(other)
    assert _moment(first["attempts"][1]["started_at"]) >= _moment(second["settled_at"])


def test_retry_command_gives_a_task_all_its_retries_again(bench: Bench) -> None:
    """`outlive retry` gives a task all its automatic retries again."""
    task = bench.launch(TRY.format(enough=4), "--retries", "1")
    bench.run("wait", task)
    bench.ok("retry", task)
    assert bench.run("wait", task).returncode == 0
    assert [each["exit_code"] for each in bench.show(task)["attempts"]] == [1, 2, 3, 0]


def test_timed_out_attempt_is_retried(bench: Bench) -> None:
    """After a timeout, a second attempt runs, which has the full timeout again."""
    task = bench.launch("[ -e slow ] && exit 0; touch slow; sleep 60", "--timeout", "300ms", "--retries", "1")
    assert bench.run("wait", task).returncode == 0
    assert [each["state"] for each in bench.show(task)["attempts"]] == ["timed_out", "succeeded"]


def test_idle_timeout_ends_only_a_task_without_progress(bench: Bench) -> None:
    """The idle timeout ends a task that only sleeps, and not a task that prints or computes.

    Row 16 of the acceptance scenarios.
    """
    idle = bench.launch("sleep 60", "--idle-timeout", "1s")
    chatty = bench.launch("for i in 1 2 3 4 5 6 7; do echo $i; sleep 0.4; done", "--idle-timeout", "1s")
    spinning = bench.launch("timeout 2.5 sh -c 'while :; do :; done'; exit 0", "--idle-timeout", "1s")
    assert bench.run("wait", idle).returncode == 1
    assert bench.run("wait", chatty, spinning).returncode == 0
    shown = bench.show(idle)
    assert (shown["state"], shown["reason"]) == ("timed_out", "idle_timeout")
    assert shown["duration_s"] < 10


def test_idle_timeout_counts_the_work_of_ended_child_processes(bench: Bench) -> None:
    """The idle timeout does not end a silent task that runs many short processes."""
    busy = "sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'"
    task = bench.launch(
        f"end=$(($(date +%s) + 3)); while [ $(date +%s) -lt $end ]; do {busy}; done", "--idle-timeout", "1s"
    )
    assert bench.run("wait", task).returncode == 0


def test_queue_timeout_holds_for_a_retry(bench: Bench) -> None:
    """The queue timeout also holds for a retry, and counts from when the retry is queued."""
    failing = bench.launch("sleep 0.3; exit 1", "--lock", "q", "--retries", "1", "--queue-timeout", "1s")
    bench.launch("sleep 60", "--lock", "q")
    assert bench.run("wait", failing).returncode == 1
    assert [(each["state"], each["reason"]) for each in bench.show(failing)["attempts"]] == [
        *(("failed", None), ("timed_out", "queue_timeout")),
    ]

"""How tasks end: each cause has its own state, and an ended task keeps its ending."""

from __future__ import annotations

import signal
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from outlive import Outlive
from outlive.domain.tasks.evidence import Evidence
from outlive.domain.tasks.settlement import plan_settlement
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from tests.support import is_alive, kill, wait_until

if TYPE_CHECKING:
    from tests.support import Bench


def test_each_cause_of_an_ending_has_its_own_state_and_exit_code(bench: Bench) -> None:
    """Success, failure, signal, timeout and cancellation each have their own state and exit code.

    Row 11 of the acceptance scenarios.
    """
    stuck = bench.launch("sleep 60", "--timeout", "300ms")
    good, bad = bench.launch("true"), bench.launch("exit 7")
    shot, stopped = bench.launch("kill -KILL $$"), bench.launch("sleep 60")
    bench.ok("cancel", stopped)
    bench.run("wait", good, bad, shot, stuck)
    seen = {t["id"]: (t["state"], t["exit_code"], t["signal"], t["reason"]) for t in bench.json("list")["tasks"]}
    assert seen[good] == ("succeeded", 0, None, None)
    assert seen[bad] == ("failed", 7, None, None)
    assert seen[shot] == ("failed", None, 9, None)
    assert seen[stuck][0] == "timed_out"
    assert seen[stuck][3] == "timeout"
    assert seen[stopped][0] == "cancelled"
    assert seen[stopped][3] == "requested"
    assert [bench.run("result", task).returncode for task in (good, bad, shot, stuck, stopped)] == [0, 1, 1, 1, 1]


def test_timeout_ends_the_whole_process_tree(bench: Bench) -> None:
    """A timeout ends the command with all its descendants. Row 15 of the acceptance scenarios."""
    task = bench.launch("(sleep 61 & sleep 62 & wait) & setsid sleep 63 & sleep 64", "--timeout", "500ms")
    pids = wait_until(lambda: bench.ok("output", task) or _children(bench.process(task)))
    bench.run("wait", task)
    shown = bench.show(task)
    assert (shown["state"], shown["left_running"]) == ("timed_out", [])
    assert not [pid for pid in pids if is_alive(int(pid))]


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_settle_changes_nothing_when_the_task_was_cancelled(bench: Bench) -> None:
    """If a success is found after a cancel, it is kept as evidence, and the task stays cancelled.

    Row 10 of the acceptance scenarios.
    """
    task = bench.launch("sleep 60")
    bench.ok("cancel", task)
    row = bench.row(task)
    late = Evidence(kind="exited", seen_by="keeper", exit_code=0)
    with SqliteLedger(bench.home.ledger, utc_now()) as ledger:
        settlement = plan_settlement(row.launch, 1, late, None, now=utc_now(), settled_by="keeper")
        assert ledger.settle(settlement) is False
    shown = bench.show(task)
    assert shown["state"] == "cancelled"
    assert [seen["exit_code"] for seen in shown["evidence"]][-1] == 0
    assert len(shown["notices"]) == 1


def test_settle_changes_nothing_when_a_newer_attempt_runs(bench: Bench) -> None:
    """If the keeper of the first attempt reports late, the running second attempt does not end."""
    task = bench.launch("test -e again && sleep 30; touch again; exit 5")
    bench.run("wait", task)
    assert bench.ok("retry", task) == task
    row = bench.row(task)
    late = Evidence(kind="exited", seen_by="keeper", exit_code=0)
    with SqliteLedger(bench.home.ledger, utc_now()) as ledger:
        assert not ledger.settle(plan_settlement(row.launch, 1, late, None, now=utc_now(), settled_by="keeper"))
    shown = bench.show(task)
    assert [a["state"] for a in shown["attempts"]] == ["failed", "running"]
    assert shown["attempts"][0]["exit_code"] == 5


def test_attempts_keep_their_own_output_and_ending(bench: Bench) -> None:
    """Two attempts of one task have two outputs, two exit codes and two notices."""
    count = bench.project / "count"
    count.write_text("\n")
    task = bench.launch("echo try; exit $(wc -l < count)")
    bench.run("wait", task)
    count.write_text("\n\n")
    bench.ok("retry", task)
    bench.run("wait", task)
    shown = bench.show(task)
    assert [(a["number"], a["exit_code"]) for a in shown["attempts"]] == [(1, 1), (2, 2)]
    assert len(shown["notices"]) == 2
    assert [Path(bench.files(task, n).output).read_text() for n in (1, 2)] == ["try\n", "try\n"]


def test_retry_is_refused_while_the_task_runs(bench: Bench) -> None:
    """While a task runs, `retry` exits with 2 and says that the task cannot be tried again yet."""
    task = bench.launch("sleep 30")
    done = bench.run("retry", task)
    assert done.returncode == 2
    assert "cannot be tried again" in done.stderr


def test_task_ends_with_its_command_when_a_child_runs_on(bench: Bench) -> None:
    """A task ends when its command exits. A child that still runs is listed as left running, and is not killed."""
    task = bench.launch("sleep 45 & until grep -q sleep /proc/$!/comm; do :; done; echo $!")
    assert bench.ok("wait", task)
    child = int(bench.ok("output", task))
    shown = bench.show(task)
    assert shown["state"] == "succeeded"
    assert shown["left_running"] == [{"pid": child, "command": "sleep 45"}]
    assert is_alive(child)
    kill(child)


def test_leftover_process_is_listed_while_the_witness_exits(bench: Bench) -> None:
    """A process that the command left is listed, even if it becomes the keeper's child during the keeper's search."""
    client = Outlive(home=bench.env["OUTLIVE_HOME"])
    tasks = [client.run("sleep 4 & true", cwd=bench.project).wait() for _ in range(60)]
    assert [len(task.as_dict()["left_running"]) for task in tasks] == [1] * 60


def test_cancel_is_refused_when_the_command_has_ended(bench: Bench) -> None:
    """If the command has ended, `cancel` is refused and names the state. The ending does not change."""
    task = bench.launch("exit 0")
    bench.ok("wait", task)
    done = bench.run("cancel", task)
    assert done.returncode == 2
    fact, hint = done.stderr.splitlines()
    assert f"task {task} is succeeded and cannot be cancelled" in fact
    assert f"outlive show {task}" in hint
    assert bench.show(task)["state"] == "succeeded"


def test_cancel_agrees_with_the_state_when_the_command_exits_at_the_same_time(bench: Bench) -> None:
    """If a command exits during its cancel, the exit code of `cancel` and the task's state agree on what came first.

    The test makes thirty tries.
    """
    for pause in range(30):
        task = bench.launch(f"sleep 0.0{pause:02d}")
        done = bench.run("cancel", task)
        shown = bench.show(task)
        if done.returncode == 0:
            assert shown["state"] == "cancelled"
        else:
            assert (done.returncode, shown["state"], shown["exit_code"]) == (2, "succeeded", 0)


def test_notice_and_retention_date_are_written_with_the_ending(bench: Bench) -> None:
    """A notice and a deletion date are written when a task ends, and not before."""
    task = bench.launch("sleep 0.4", "--session", "s-9", "--retain", "2d")
    before = bench.show(task)
    assert (before["notices"], before["delete_after"]) == ([], None)
    bench.ok("wait", task)
    after = bench.show(task)
    assert [(n["kind"], n["session"], n["state"]) for n in after["notices"]] == [("ended", "s-9", "pending")]
    row = bench.row(task)
    assert row.current.delete_after - row.current.settled_at == timedelta(days=2)


def test_notify_policy_dismisses_the_notices_of_unwanted_endings(bench: Bench) -> None:
    """With `--notify`, the notice of an unwanted ending is recorded as dismissed, and is not reported."""
    expected = {("never", "false"): "dismissed", ("failure", "true"): "dismissed", ("failure", "false"): "pending"}
    for (policy, command), state in expected.items():
        task = bench.ok("run", "--notify", policy, "--", command)
        bench.run("wait", task)
        assert [notice["state"] for notice in bench.show(task)["notices"]] == [state]


def test_result_read_in_the_launching_session_acknowledges_the_notice(bench: Bench) -> None:
    """`result` in the launching session acknowledges the notice.

    `wait --no-ack` and `show` do not, and neither does a reader outside of the session.
    """
    task = bench.launch("true", "--session", "s-1")
    bench.ok("wait", task, "--no-ack", "--session", "s-1")
    bench.ok("show", task)
    bench.ok("result", task, "--session", "s-2")
    bench.ok("result", task)
    assert bench.show(task)["notices"][0]["state"] == "pending"
    bench.ok("result", task, "--session", "s-1")
    assert bench.show(task)["notices"][0]["state"] == "acked"


def test_database_records_every_change_of_state(bench: Bench) -> None:
    """The ledger records every change of state: `show` lists queued, running and succeeded in order."""
    task = bench.launch("true")
    bench.ok("wait", task)
    assert [(m["from"], m["to"]) for m in bench.show(task)["moves"]] == [
        (None, "queued"),
        ("queued", "running"),
        ("running", "succeeded"),
    ]


def test_task_stays_running_while_its_keeper_is_stopped(bench: Bench) -> None:
    """While its keeper is stopped, a task counts as running, even if the command has exited.

    The keeper records the ending when it continues.
    """
    task = bench.launch("sleep 0.2; exit 6", "--observe", "off")
    keeper = bench.keeper(task)
    kill(keeper, signal.SIGSTOP)
    command = bench.process(task)
    wait_until(lambda: not is_alive(command), "the command's end")
    assert bench.show(task)["state"] == "running"
    kill(keeper, signal.SIGCONT)
    bench.run("wait", task)
    shown = bench.show(task)
    assert (shown["exit_code"], shown["settled_by"]) == (6, "keeper")

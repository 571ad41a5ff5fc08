"""Endings: one way to end, each cause told apart, and terminal stays terminal."""

from __future__ import annotations

import signal
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from outlive import Outlive
from outlive.domain.evidence import Evidence
from outlive.domain.settlement import plan_settlement
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from tests.support import is_alive, kill, wait_until

if TYPE_CHECKING:
    from tests.support import Bench


def test_each_cause_has_its_own_state_and_exit_code(bench: Bench) -> None:
    """Row 11: success, failure, signal, timeout, cancel and never-started are told apart."""
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


def test_a_timeout_ends_the_whole_tree(bench: Bench) -> None:
    """Row 15: a forking script past its deadline leaves no descendant."""
    task = bench.launch("(sleep 61 & sleep 62 & wait) & setsid sleep 63 & sleep 64", "--timeout", "500ms")
    pids = wait_until(lambda: bench.ok("output", task) or _children(bench.process(task)))
    bench.run("wait", task)
    shown = bench.show(task)
    assert (shown["state"], shown["left_running"]) == ("timed_out", [])
    assert not [pid for pid in pids if is_alive(int(pid))]


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_terminal_is_sticky(bench: Bench) -> None:
    """Row 10: after a cancel, a late word of success changes nothing but is kept as evidence."""
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


def test_the_late_word_of_an_old_attempt_changes_nothing(bench: Bench) -> None:
    """A retry is running; the first attempt's keeper reports once more; the task stays running."""
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


def test_attempts_keep_their_output_and_endings(bench: Bench) -> None:
    """Two attempts of one task: two outputs, two exit codes, two notices, one id."""
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


def test_a_running_task_cannot_be_retried(bench: Bench) -> None:
    """Refused with exit code 2 and a hint."""
    task = bench.launch("sleep 30")
    done = bench.run("retry", task)
    assert done.returncode == 2
    assert "cannot be tried again" in done.stderr


def test_the_end_of_the_command_is_the_end(bench: Bench) -> None:
    """A command that leaves a child behind has ended; the child is named and lives on."""
    task = bench.launch("sleep 45 & until grep -q sleep /proc/$!/comm; do :; done; echo $!")
    assert bench.ok("wait", task)
    child = int(bench.ok("output", task))
    shown = bench.show(task)
    assert shown["state"] == "succeeded"
    assert shown["left_running"] == [{"pid": child, "command": "sleep 45"}]
    assert is_alive(child)
    kill(child)


def test_who_is_left_is_seen_while_the_witness_goes(bench: Bench) -> None:
    """The survivor moves from the witness to the keeper in the moment in which the keeper looks."""
    client = Outlive(home=bench.env["OUTLIVE_HOME"])
    tasks = [client.run("sleep 4 & true", cwd=bench.project).wait() for _ in range(60)]
    assert [len(task.as_dict()["left_running"]) for task in tasks] == [1] * 60


def test_a_cancel_that_comes_too_late_says_so(bench: Bench) -> None:
    """The command had exited before any signal was sent: its own ending stands."""
    task = bench.launch("exit 0")
    bench.ok("wait", task)
    done = bench.run("cancel", task)
    assert done.returncode == 2
    fact, hint = done.stderr.splitlines()
    assert f"task {task} is succeeded and cannot be cancelled" in fact
    assert f"outlive show {task}" in hint
    assert bench.show(task)["state"] == "succeeded"


def test_a_cancel_racing_an_exit_tells_which_came_first(bench: Bench) -> None:
    """Thirty tasks that end at about the moment of the cancel: each record is one whole truth."""
    for pause in range(30):
        task = bench.launch(f"sleep 0.0{pause:02d}")
        done = bench.run("cancel", task)
        shown = bench.show(task)
        if done.returncode == 0:
            assert shown["state"] == "cancelled"
        else:
            assert (done.returncode, shown["state"], shown["exit_code"]) == (2, "succeeded", 0)


def test_the_notice_is_written_with_the_ending(bench: Bench) -> None:
    """A live task has neither notice nor retention date; an ended one has exactly one of each."""
    task = bench.launch("sleep 0.4", "--session", "s-9", "--retain", "2d")
    before = bench.show(task)
    assert (before["notices"], before["delete_after"]) == ([], None)
    bench.ok("wait", task)
    after = bench.show(task)
    assert [(n["kind"], n["session"], n["state"]) for n in after["notices"]] == [("ended", "s-9", "pending")]
    row = bench.row(task)
    assert row.current.delete_after - row.current.settled_at == timedelta(days=2)


def test_the_notify_policy_decides_what_is_owed(bench: Bench) -> None:
    """Unwanted endings are on record but owed to nobody."""
    expected = {("never", "false"): "dismissed", ("failure", "true"): "dismissed", ("failure", "false"): "pending"}
    for (policy, command), state in expected.items():
        task = bench.ok("run", "--notify", policy, "--", command)
        bench.run("wait", task)
        assert [notice["state"] for notice in bench.show(task)["notices"]] == [state]


def test_reading_a_result_in_its_session_withdraws_the_notice(bench: Bench) -> None:
    """`result` inside the launching session acknowledges; looking, or another session, does not."""
    task = bench.launch("true", "--session", "s-1")
    bench.ok("wait", task, "--no-ack", "--session", "s-1")
    bench.ok("show", task)
    bench.ok("result", task, "--session", "s-2")
    bench.ok("result", task)
    assert bench.show(task)["notices"][0]["state"] == "pending"
    bench.ok("result", task, "--session", "s-1")
    assert bench.show(task)["notices"][0]["state"] == "acked"


def test_moves_are_remembered_by_the_database(bench: Bench) -> None:
    """Every step of a life is on record, in order."""
    task = bench.launch("true")
    bench.ok("wait", task)
    assert [(m["from"], m["to"]) for m in bench.show(task)["moves"]] == [
        (None, "queued"),
        ("queued", "running"),
        ("running", "succeeded"),
    ]


def test_a_stopped_command_is_still_running(bench: Bench) -> None:
    """SIGSTOP is not an end, for the command or for its keeper; both go on afterwards."""
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

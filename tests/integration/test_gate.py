"""The gate: whether a session may stop, and what it is told if not."""

from __future__ import annotations

import subprocess
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from outlive.bundle.attempt import keeper_lives
from outlive.service import gate as gate_service
from outlive.service.gate import wait_at_gate
from tests.session_steps import begin, told
from tests.support import wait_until

if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.domain.task import Task
    from tests.support import Bench


def asked(bench: Bench, session: str = "s-1", *options: str, **more: Any) -> Any:
    """The answer of the gate."""
    return bench.json("gate", "--session", session, *options, **more)


def test_it_is_closed_by_what_the_session_launched_to_be_told_of(bench: Bench) -> None:
    """Row 40: while it runs, and until its ending was told; never by anything else."""
    begin(bench, "s-1")
    assert asked(bench)["may_stop"] is True
    bench.launch("sleep 401", "--session", "s-2")
    bench.launch("sleep 402", "--session", "s-1", "--notify", "never")
    bench.launch("sleep 403", "--session", "s-1", "--notify", "failure")
    bench.launch("sleep 404")
    assert asked(bench)["may_stop"] is True
    task = bench.launch("sleep 405", "--session", "s-1")
    answer = asked(bench)
    assert (answer["may_stop"], [each["id"] for each in answer["running"]]) == (False, [task])
    assert task in answer["reason"]
    assert bench.run("gate", "--session", "s-1", "--exit-code").returncode == 1
    bench.ok("cancel", task)
    answer = asked(bench)
    assert (answer["may_stop"], answer["running"]) == (False, [])
    assert [notice["task"]["id"] for notice in answer["untold"]] == [task]
    assert told(bench, "s-1") == [task]
    assert asked(bench)["may_stop"] is True
    assert bench.run("gate", "--session", "s-1", "--exit-code").returncode == 0


def test_a_heir_waits_for_what_its_predecessor_launched(bench: Bench) -> None:
    """It will be told, so it may wait; the one before it does not any more."""
    begin(bench, "s-1")
    task = bench.launch("sleep 401", "--session", "s-1")
    begin(bench, "s-2", "--source", "clear", "--continues", "s-1")
    assert [each["id"] for each in asked(bench, "s-2")["running"]] == [task]
    assert asked(bench, "s-1")["may_stop"] is True


def test_what_is_gone_does_not_keep_it_and_it_says_so(bench: Bench) -> None:
    """A task that died unseen is lost: told as that, and nobody waits for an ending that never comes."""
    begin(bench, "s-1")
    task = bench.launch("sleep 401", "--session", "s-1")
    bench.kill(task, "keeper", "witness", "command")
    answer = asked(bench)
    assert answer["running"] == []
    assert [each["id"] for each in answer["lost"]] == [task]
    assert "lost, no ending will come" in answer["reason"]
    assert told(bench, "s-1") == [task]
    assert asked(bench)["may_stop"] is True


def test_a_ceiling_lets_it_go_with_the_reason(bench: Bench) -> None:
    """From the first time that it was asked to wait; a boundary starts it anew."""
    begin(bench, "s-1")
    bench.launch("sleep 401", "--session", "s-1")
    assert asked(bench, "s-1", "--ceiling", "300ms")["may_stop"] is False
    time.sleep(0.35)
    answer = asked(bench, "s-1", "--ceiling", "300ms")
    assert (answer["may_stop"], "long enough" in answer["reason"]) == (True, True)
    assert asked(bench)["may_stop"] is False  # of the ordinary ceiling, nothing is over yet
    begin(bench, "s-1", "--source", "compact")
    assert asked(bench, "s-1", "--ceiling", "300ms")["may_stop"] is False


def test_waiting_at_the_gate_ends_when_it_may_stop(bench: Bench) -> None:
    """Row 40: it returns when the last has ended, and says that its ending was not told."""
    begin(bench, "s-1")
    tasks = [bench.launch(f"sleep {n}", "--session", "s-1") for n in ("0.3", "0.9")]
    answer = asked(bench, "s-1", "--wait")
    assert (answer["running"], len(answer["untold"])) == ([], 2)
    assert sorted(told(bench, "s-1")) == sorted(tasks)
    began = time.monotonic()
    bench.launch("sleep 401", "--session", "s-1")
    answer = asked(bench, "s-1", "--wait", "--ceiling", "500ms")
    assert (answer["may_stop"], time.monotonic() - began < 10) == (True, True)
    assert "long enough" in answer["reason"]


@pytest.mark.root
def test_what_is_out_of_sight_is_unknown_first_and_lost_after_a_second_look(bench: Bench) -> None:
    """A task of another PID namespace: running while its lock is held, unknown when not, lost after the grace."""
    if subprocess.run(["unshare", "-pf", "--mount-proc", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no PID namespaces here")
    begin(bench, "s-1")
    script = f"{' '.join(bench.command('run', '--session', 's-1', '--', 'sleep', '401'))}; exec sleep 400"
    other = subprocess.Popen(
        ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script],
        env=bench.env, cwd=bench.project, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        (task,) = wait_until(lambda: bench.json("list")["tasks"], "the task")
        wait_until(lambda: bench.row(task["id"]).state == "running", "it to run")
        answer = asked(bench)
        assert (answer["may_stop"], answer["unknown"]) == (False, [])
    finally:
        other.kill()
        other.wait()
    wait_until(lambda: not keeper_lives(bench.files(task["id"])), "its keeper's end")
    grace = {"OUTLIVE_GRACE_S": "1"}
    answer = asked(bench, env=grace)
    assert (answer["may_stop"], answer["unknown"]) == (False, [task["id"]])
    assert "out of sight" in answer["reason"]
    assert bench.row(task["id"]).state == "running"
    time.sleep(1.1)
    answer = asked(bench, env=grace)
    assert [each["id"] for each in answer["lost"]] == [task["id"]]
    assert answer["running"] == []
    assert told(bench, "s-1") == [task["id"]]
    assert asked(bench)["may_stop"] is True


def test_nothing_is_probed_when_nobody_waits_any_more(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 57: of what cannot be seen, looks are taken only while somebody waits at the gate."""
    begin(bench, "s-1")
    task = bench.launch("sleep 401", "--session", "s-1")
    looks: list[str] = []

    def probe(_: Home, seen: Task) -> str:
        looks.append(seen.id)
        return "unknown"

    monkeypatch.setattr(gate_service, "is_ours_to_judge", lambda _: False)
    monkeypatch.setattr(gate_service, "_LOOK_AGAIN", timedelta(milliseconds=50))
    monkeypatch.setattr(gate_service, "_probe", probe)
    answer = wait_at_gate(bench.home, "s-1", str(bench.project), None, ceiling=0.5)
    assert (answer.may_stop, [each.id for each in answer.unknown]) == (True, [task])
    assert len(looks) > 2
    taken = len(looks)
    time.sleep(0.3)
    assert len(looks) == taken


def test_a_probe_that_fails_changes_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown is not absent: however often and however long it is asked, nothing is called lost."""
    begin(bench, "s-1")
    task = bench.launch("sleep 401", "--session", "s-1")
    monkeypatch.setenv("OUTLIVE_GRACE_S", "0")
    monkeypatch.setattr(gate_service, "is_ours_to_judge", lambda _: False)
    monkeypatch.setattr(gate_service, "_probe", lambda *_: "unknown")
    for _ in range(3):
        answer = gate_service.gate(bench.home, "s-1", str(bench.project), None)
        assert (answer.may_stop, answer.lost) == (False, ())
    assert bench.row(task).state == "running"

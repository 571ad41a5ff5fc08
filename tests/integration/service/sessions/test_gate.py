"""The gate: whether a session may stop, and the reason if it may not."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from outlive.service.sessions import gate as gate_service
from outlive.service.sessions.gate import wait_at_gate
from tests.session_steps import begin, told
from tests.support import tasks_of_another_pid_namespace

if TYPE_CHECKING:
    from outlive.domain.tasks.task import Task
    from tests.support import Bench


def asked(bench: Bench, session: str = "s-1", *options: str, **more: Any) -> Any:
    """Return the JSON document that `gate` prints."""
    return bench.json("gate", "--session", session, *options, **more)


def test_gate_refuses_a_stop_while_a_task_of_the_session_runs_or_is_unreported(bench: Bench) -> None:
    """The gate refuses a stop while a task of the session runs, or while an ending is not reported.

    Tasks of other sessions do not count, and neither do tasks whose success will not be reported. Row 40 of the
    acceptance scenarios.
    """
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


def test_gate_of_a_successor_waits_for_tasks_of_its_predecessor(bench: Bench) -> None:
    """The gate of a session also waits for tasks of the session that it continues.

    The earlier session may stop, because the later session receives the endings.
    """
    begin(bench, "s-1")
    task = bench.launch("sleep 401", "--session", "s-1")
    begin(bench, "s-2", "--source", "clear", "--continues", "s-1")
    assert [each["id"] for each in asked(bench, "s-2")["running"]] == [task]
    assert asked(bench, "s-1")["may_stop"] is True


def test_gate_names_a_lost_task_and_does_not_wait_for_it(bench: Bench) -> None:
    """The gate refuses a stop to report that a task is lost. After this, it allows a stop."""
    begin(bench, "s-1")
    task = bench.launch("sleep 401", "--session", "s-1")
    bench.kill(task, "keeper", "witness", "command")
    answer = asked(bench)
    assert answer["running"] == []
    assert [each["id"] for each in answer["lost"]] == [task]
    assert "lost, so do not wait" in answer["reason"]
    assert told(bench, "s-1") == [task]
    assert asked(bench)["may_stop"] is True


def test_gate_lets_the_session_stop_when_the_ceiling_has_passed(bench: Bench) -> None:
    """When the gate has refused stops for longer than its time limit, it allows a stop.

    After a compaction, this time begins again.
    """
    begin(bench, "s-1")
    bench.launch("sleep 401", "--session", "s-1")
    assert asked(bench, "s-1", "--ceiling", "300ms")["may_stop"] is False
    time.sleep(0.35)
    answer = asked(bench, "s-1", "--ceiling", "300ms")
    assert (answer["may_stop"], "which is the limit" in answer["reason"]) == (True, True)
    assert asked(bench)["may_stop"] is False  # With the default time limit, the gate would still refuse.
    begin(bench, "s-1", "--source", "compact")
    assert asked(bench, "s-1", "--ceiling", "300ms")["may_stop"] is False


def test_gate_wait_returns_when_the_last_task_has_ended(bench: Bench) -> None:
    """`gate --wait` returns when the last task has ended, and names the endings that are not reported yet.

    With `--ceiling`, it returns at the latest after this time. Row 40 of the acceptance scenarios.
    """
    begin(bench, "s-1")
    tasks = [bench.launch(f"sleep {n}", "--session", "s-1") for n in ("0.3", "0.9")]
    answer = asked(bench, "s-1", "--wait")
    assert (answer["running"], len(answer["untold"])) == ([], 2)
    assert sorted(told(bench, "s-1")) == sorted(tasks)
    began = time.monotonic()
    bench.launch("sleep 401", "--session", "s-1")
    answer = asked(bench, "s-1", "--wait", "--ceiling", "500ms")
    assert (answer["may_stop"], time.monotonic() - began < 10) == (True, True)
    assert "which is the limit" in answer["reason"]


@pytest.mark.root
def test_gate_settles_a_task_as_lost_when_its_pid_namespace_has_ended(bench: Bench) -> None:
    """If a task's lock is free, the gate settles the task as lost.

    While a process of another PID namespace holds it, the task runs.
    """
    begin(bench, "s-1")
    with tasks_of_another_pid_namespace(bench, 1, "--session", "s-1") as (task,):
        answer = asked(bench)
        assert (answer["may_stop"], answer["unknown"]) == (False, [])
    answer = asked(bench)
    assert [each["id"] for each in answer["lost"]] == [task]
    assert (answer["running"], answer["unknown"]) == ([], [])
    assert told(bench, "s-1") == [task]
    assert asked(bench)["may_stop"] is True


def test_gate_checks_a_task_with_unseen_processes_only_while_a_session_waits(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a task's processes cannot be seen, the gate checks the task repeatedly while a session waits.

    It does not do so afterwards. Row 57 of the acceptance scenarios.
    """
    begin(bench, "s-1")
    task = bench.launch("sleep 401", "--session", "s-1")
    looks: list[str] = []

    def look(seen: Task) -> bool:
        looks.append(seen.id)
        return True

    monkeypatch.setattr(gate_service, "_is_out_of_sight", look)
    monkeypatch.setattr(gate_service, "_LOOK_AGAIN", timedelta(milliseconds=50))
    answer = wait_at_gate(bench.home, "s-1", str(bench.project), None, ceiling=0.5)
    assert (answer.may_stop, [each.id for each in answer.unknown]) == (True, [task])
    assert len(looks) > 2
    taken = len(looks)
    time.sleep(0.3)
    assert len(looks) == taken

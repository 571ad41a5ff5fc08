"""How evidence decides the ending of an attempt. The functions are pure, and give every process the same result."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlive.domain.tasks.evidence import Evidence, Intent, decide
from outlive.domain.tasks.lifecycle import MOVES, TERMINAL, may_move
from outlive.domain.tasks.settlement import OutputSize, Settlement, notice_id, plan_settlement
from outlive.domain.tasks.task import Launch, LeftRunning
from tests.unit.values import (
    NOW,
    evidence_while,
    exited,
    intents,
    launch,
    moments,
    remnants,
    vanished,
)

if TYPE_CHECKING:
    from datetime import datetime

    from outlive.domain.tasks.evidence import IntentKind

some = settings(max_examples=20, deadline=None)
any_evidence = evidence_while["running"]
launches = st.builds(
    launch,
    notify=st.sampled_from(["all", "end", "output", "failure", "never"]),
    retain=st.integers(0, 10**13).map(lambda micros: timedelta(microseconds=micros)),
    session=st.none() | st.just("s-1"),
)
cancelled_by_person = Intent(kind="cancel", at=NOW)


def settlement(
    evidence: Evidence,
    intent: Intent | None = None,
    left: tuple[LeftRunning, ...] = (),
    asked: Launch | None = None,
) -> Settlement:
    """Return the settlement for some evidence, with defaults for everything else."""
    return plan_settlement(asked or launch(), 1, evidence, intent, now=NOW, settled_by="keeper", left_running=left)


def is_owed(policy: str, state: str) -> bool:
    """Return whether the option `--notify` requests a notice for this ending."""
    return {"all": True, "end": True, "output": True, "failure": state != "succeeded", "never": False}[policy]


# --- properties -----------------------------------------------------------------------------------


@some
@given(st.data())
def test_attempt_ends_once_whatever_the_order_of_evidence(data: st.DataObject) -> None:
    """An attempt ends once, in whatever order evidence comes. Every settlement after the first is refused."""
    state = data.draw(st.sampled_from(sorted(MOVES)))
    steps = data.draw(st.lists(st.tuples(evidence_while[state], st.none() | intents, remnants), min_size=1, max_size=4))
    ended = []
    for evidence, intent, left in steps:
        verdict = settlement(evidence, intent, left).verdict
        if may_move(state, verdict.state):
            state = verdict.state
            ended.append(verdict)
    assert len(ended) == 1
    assert state in TERMINAL
    assert ended[0].state == settlement(*steps[0]).verdict.state


@some
@given(any_evidence, st.none() | intents, st.integers(0, 3))
def test_a_verdict_adds_nothing_to_what_was_seen(evidence: Evidence, intent: Intent | None, survivors: int) -> None:
    """Exit code, signal and detail of an ending are those of the evidence, or None."""
    verdict = decide(evidence, intent, survivors)
    assert (verdict.exit_code, verdict.signal) == (evidence.exit_code, evidence.signal)
    assert verdict.detail == evidence.detail
    assert (verdict.exit_code is None) == (evidence.kind != "exited")


@some
@given(any_evidence, st.none() | intents, st.integers(0, 3))
def test_only_exit_code_zero_without_an_intent_is_a_success(
    evidence: Evidence, intent: Intent | None, survivors: int
) -> None:
    """An attempt succeeds only with exit code 0, and only if it was not, for example, cancelled."""
    verdict = decide(evidence, intent, survivors)
    deserved = evidence.kind == "exited" and evidence.exit_code == 0 and intent is None
    assert (verdict.state == "succeeded") == deserved


@some
@given(any_evidence, intents, st.integers(1, 3))
def test_intent_with_surviving_processes_is_a_failure(evidence: Evidence, intent: Intent, survivors: int) -> None:
    """If a cancel left processes alive, the attempt fails with the reason `cancel_incomplete`."""
    verdict = decide(evidence, intent, survivors)
    assert verdict.state in ("failed", "lost")
    if verdict.state == "failed":
        assert verdict.reason == f"{intent.kind}_incomplete"


@some
@given(any_evidence, st.none() | intents, st.integers(0, 3))
def test_verdict_is_lost_only_when_the_end_was_not_seen(
    evidence: Evidence, intent: Intent | None, survivors: int
) -> None:
    """If no process saw the end, the task is lost, even if a cancel was requested."""
    assert (decide(evidence, intent, survivors).state == "lost") == (evidence.kind == "vanished")


@some
@given(launches, st.integers(1, 300), any_evidence, st.none() | intents, remnants, moments)
def test_settlement_has_state_notice_and_retention_date(  # noqa: PLR0917 - the test varies each of these arguments
    asked: Launch,
    number: int,
    evidence: Evidence,
    intent: Intent | None,
    left: tuple[LeftRunning, ...],
    now: datetime,
) -> None:
    """A settlement has a state, a notice and a deletion date. The same arguments always give the same settlement."""
    size = OutputSize(written=5, dropped=1, truncated=True)

    def plan() -> Settlement:
        return plan_settlement(asked, number, evidence, intent, now=now, settled_by="x", left_running=left, output=size)

    planned = plan()
    assert planned == plan()
    assert planned.verdict.state in TERMINAL
    assert planned.delete_after == now + asked.retain
    assert planned.settled_at == now
    assert (planned.task, planned.attempt, planned.session) == (asked.id, number, asked.session)
    assert planned.notice_kind == ("lost" if planned.verdict.state == "lost" else "ended")
    assert planned.notice_id == notice_id(asked.id, number, planned.notice_kind)
    assert (planned.left_running, planned.output, planned.evidence) == (left, size, evidence)


@some
@given(launches, any_evidence, st.none() | intents)
def test_notice_is_dismissed_when_the_policy_does_not_ask_for_it(
    asked: Launch, evidence: Evidence, intent: Intent | None
) -> None:
    """Every ending has a notice. If `--notify` does not ask for it, the notice is dismissed at once."""
    planned = settlement(evidence, intent, asked=asked)
    owed = is_owed(asked.notify, planned.verdict.state)
    assert planned.notice_state == ("pending" if owed else "dismissed")


@pytest.mark.parametrize("policy", ["all", "end", "output", "failure", "never"])
@pytest.mark.parametrize(
    ("evidence", "intent", "state"),
    [
        (exited(0), None, "succeeded"),
        (exited(1), None, "failed"),
        (exited(0), "cancel", "cancelled"),
        (exited(0), "timeout", "timed_out"),
        (vanished(), None, "lost"),
    ],
)
def test_notice_is_pending_for_the_endings_that_its_policy_names(
    policy: str, evidence: Evidence, intent: IntentKind | None, state: str
) -> None:
    """With `--notify failure`, every ending but success has a pending notice, even `lost` and `timed_out`."""
    wanted = None if intent is None else Intent(kind=intent, at=NOW)
    planned = settlement(evidence, wanted, asked=launch(notify=policy))
    assert planned.verdict.state == state
    assert planned.notice_state == ("pending" if is_owed(policy, state) else "dismissed")


# --- examples -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("evidence", "intent", "state", "reason"),
    [
        (exited(0), None, "succeeded", None),
        (exited(1), None, "failed", None),
        (Evidence(kind="signalled", seen_by="witness", signal=9), None, "failed", None),
        (
            Evidence(kind="not_started", seen_by="keeper", started="no"),
            None,
            "failed",
            "not_started",
        ),
        (
            Evidence(kind="not_started", seen_by="keeper", started="no", cause="installation_gone"),
            None,
            "failed",
            "installation_gone",
        ),
        (
            Evidence(kind="not_started", seen_by="keeper", started="no"),
            "cancel",
            "cancelled",
            "requested",
        ),
        (vanished(), None, "lost", "keeper_killed"),
        (vanished(cause=None), None, "lost", "unknown"),
        (vanished(), "cancel", "lost", "keeper_killed"),
        (exited(0), "cancel", "cancelled", "requested"),
        (exited(143), "session_ended", "cancelled", "session_ended"),
        (exited(143), "timeout", "timed_out", "timeout"),
        (exited(143), "output_limit", "failed", "output_limit"),
    ],
)
def test_decide_returns_one_state_and_reason_for_evidence_and_intent(
    evidence: Evidence, intent: IntentKind | None, state: str, reason: str | None
) -> None:
    """For each kind of evidence, with or without a cancel or timeout, `decide` returns one state and reason."""
    wanted = None if intent is None else Intent(kind=intent, at=NOW)
    verdict = decide(evidence, wanted)
    assert (verdict.state, verdict.reason) == (state, reason)


def test_surviving_processes_do_not_change_a_normal_end() -> None:
    """If a command ends by itself, processes that it left do not change the ending. They are listed with it."""
    left = (LeftRunning(pid=77, command="sleep 100"),)
    planned = settlement(exited(0), None, left)
    assert planned.verdict.state == "succeeded"
    assert planned.left_running == left


def test_surviving_processes_make_a_cancelled_command_a_failure() -> None:
    """If a cancelled command leaves processes alive, the attempt fails with the reason `cancel_incomplete`."""
    planned = settlement(exited(143), cancelled_by_person, (LeftRunning(pid=77, command="x"),))
    assert (planned.verdict.state, planned.verdict.reason) == ("failed", "cancel_incomplete")


def test_notice_id_follows_from_task_attempt_and_kind() -> None:
    """Two processes that settle the same ending compute the same id for its notice."""
    assert notice_id("t7k2m9q4", 1, "ended") == "nt7k2m9q401ended"
    assert notice_id("t7k2m9q4", 2, "input_required") == "nt7k2m9q402inputrequired"


def test_notice_ids_of_different_endings_differ() -> None:
    """Notices of two attempts, tasks or kinds never have the same id."""
    names = {
        notice_id(task, number, kind)
        for task in ("t7k2m9q4", "t7k2m9q5", "tbcdfghj")
        for number in (1, 2, 10, 11, 99, 100, 101)
        for kind in ("ended", "lost")
    }
    assert len(names) == 3 * 7 * 2

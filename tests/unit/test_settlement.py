"""Evidence -> verdict -> settlement: pure, and the same for everybody who sees the same."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlive.domain.evidence import Evidence, Intent, decide
from outlive.domain.lifecycle import MOVES, TERMINAL, may_move
from outlive.domain.settlement import OutputSize, Settlement, notice_id, plan_settlement
from outlive.domain.task import Launch, LeftRunning
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

    from outlive.domain.evidence import IntentKind

some = settings(max_examples=20, deadline=None)
any_evidence = evidence_while["running"]
launches = st.builds(
    launch,
    notify=st.sampled_from(["all", "end", "failure", "never"]),
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
    """A plan in which only the interesting things are chosen."""
    return plan_settlement(asked or launch(), 1, evidence, intent, now=NOW, settled_by="keeper", left_running=left)


def is_owed(policy: str, state: str) -> bool:
    """What each policy asks to be told of."""
    return {"all": True, "end": True, "failure": state != "succeeded", "never": False}[policy]


# --- properties -----------------------------------------------------------------------------------


@some
@given(st.data())
def test_any_sequence_of_sightings_ends_an_attempt_once(data: st.DataObject) -> None:
    """The first settlement is a move of the table; every later one finds that there is none."""
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
    """Unknown stays unknown: code, signal and detail are the evidence's, or absent."""
    verdict = decide(evidence, intent, survivors)
    assert (verdict.exit_code, verdict.signal) == (evidence.exit_code, evidence.signal)
    assert verdict.detail == evidence.detail
    assert (verdict.exit_code is None) == (evidence.kind != "exited")


@some
@given(any_evidence, st.none() | intents, st.integers(0, 3))
def test_success_is_exit_code_zero_that_nobody_had_to_force(
    evidence: Evidence, intent: Intent | None, survivors: int
) -> None:
    """And nothing else is a success; in particular not a vanished command."""
    verdict = decide(evidence, intent, survivors)
    deserved = evidence.kind == "exited" and evidence.exit_code == 0 and intent is None
    assert (verdict.state == "succeeded") == deserved


@some
@given(any_evidence, intents, st.integers(1, 3))
def test_what_left_something_alive_is_not_called_cancelled(evidence: Evidence, intent: Intent, survivors: int) -> None:
    """A cancel that did not take is a failure that says so."""
    verdict = decide(evidence, intent, survivors)
    assert verdict.state in ("failed", "lost")
    if verdict.state == "failed":
        assert verdict.reason == f"{intent.kind}_incomplete"


@some
@given(any_evidence, st.none() | intents, st.integers(0, 3))
def test_lost_is_said_of_the_unseen_and_of_nothing_else(
    evidence: Evidence, intent: Intent | None, survivors: int
) -> None:
    """An ending nobody saw is called lost, never guessed from what somebody had wanted."""
    assert (decide(evidence, intent, survivors).state == "lost") == (evidence.kind == "vanished")


@some
@given(launches, st.integers(1, 300), any_evidence, st.none() | intents, remnants, moments)
def test_a_settlement_is_whole(  # noqa: PLR0917 - one argument per thing that varies
    asked: Launch,
    number: int,
    evidence: Evidence,
    intent: Intent | None,
    left: tuple[LeftRunning, ...],
    now: datetime,
) -> None:
    """State, one notice and the retention date come together, from what was given alone."""
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
def test_who_asked_not_to_be_told_is_not_told(asked: Launch, evidence: Evidence, intent: Intent | None) -> None:
    """The notice exists whatever the policy; the policy decides whether it is still owed."""
    planned = settlement(evidence, intent, asked=asked)
    owed = is_owed(asked.notify, planned.verdict.state)
    assert planned.notice_state == ("pending" if owed else "dismissed")


@pytest.mark.parametrize("policy", ["all", "end", "failure", "never"])
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
def test_each_policy_owes_the_endings_it_names(
    policy: str, evidence: Evidence, intent: IntentKind | None, state: str
) -> None:
    """`failure` means every ending but success: a lost or timed-out task is no good news."""
    wanted = None if intent is None else Intent(kind=intent, at=NOW)
    planned = settlement(evidence, wanted, asked=launch(notify=policy))
    assert planned.verdict.state == state
    assert planned.notice_state == ("pending" if is_owed(policy, state) else "dismissed")


# --- the table, by example ------------------------------------------------------------------------


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
def test_what_follows_from_what(evidence: Evidence, intent: IntentKind | None, state: str, reason: str | None) -> None:
    """Each kind of evidence with each kind of intent has one verdict and one word for it."""
    wanted = None if intent is None else Intent(kind=intent, at=NOW)
    verdict = decide(evidence, wanted)
    assert (verdict.state, verdict.reason) == (state, reason)


def test_descendants_of_a_normal_end_do_not_change_it() -> None:
    """The command's own exit is the ending; what it left running is named beside it."""
    left = (LeftRunning(pid=77, command="sleep 100"),)
    planned = settlement(exited(0), None, left)
    assert planned.verdict.state == "succeeded"
    assert planned.left_running == left


def test_descendants_of_a_cancelled_command_make_it_a_failure() -> None:
    """The same remnant after a cancel means that the cancel did not take."""
    planned = settlement(exited(143), cancelled_by_person, (LeftRunning(pid=77, command="x"),))
    assert (planned.verdict.state, planned.verdict.reason) == ("failed", "cancel_incomplete")


def test_a_notice_keeps_its_name() -> None:
    """Ids of notices are stable: two who plan the same ending deliver the same notice."""
    assert notice_id("t7k2m9q4", 1, "ended") == "nt7k2m9q401ended"
    assert notice_id("t7k2m9q4", 2, "input_required") == "nt7k2m9q402inputrequired"


def test_notices_of_different_endings_have_different_names() -> None:
    """No two attempts, tasks or kinds share one."""
    names = {
        notice_id(task, number, kind)
        for task in ("t7k2m9q4", "t7k2m9q5", "tbcdfghj")
        for number in (1, 2, 10, 11, 99, 100, 101)
        for kind in ("ended", "lost")
    }
    assert len(names) == 3 * 7 * 2

"""The one table of moves, against the sentence it came from."""

from __future__ import annotations

import itertools

import pytest

from outlive.domain.lifecycle import (
    CONDITIONS,
    LIVE,
    MOVES,
    STATES,
    TERMINAL,
    is_terminal,
    may_move,
)

ENDINGS = {"succeeded", "failed", "cancelled", "timed_out", "lost"}
ALLOWED = {("queued", "running")} | {
    *(("queued", ending) for ending in ENDINGS - {"succeeded"}),
    *(("running", ending) for ending in ENDINGS),
}


def test_the_table_is_the_designed_one() -> None:
    """Queued -> running -> any ending; queued -> any ending but success."""
    assert {(before, after) for before, afters in MOVES.items() for after in afters} == ALLOWED


def test_a_move_is_allowed_only_by_the_table() -> None:
    """No other pair of states, and no state to itself."""
    for before, after in itertools.product(STATES, STATES):
        assert may_move(before, after) == ((before, after) in ALLOWED), (before, after)


@pytest.mark.parametrize("ending", TERMINAL)
def test_terminal_is_sticky(ending: str) -> None:
    """Nothing follows an ending, `lost` included."""
    assert is_terminal(ending)
    assert not any(may_move(ending, after) for after in STATES)


@pytest.mark.parametrize("state", LIVE)
def test_a_live_state_has_not_ended_and_can_still_end(state: str) -> None:
    """Wherever an attempt is before its end, there is a way to every unhappy ending."""
    assert not is_terminal(state)
    assert all(may_move(state, ending) for ending in ENDINGS - {"succeeded"})


def test_live_and_terminal_divide_the_states() -> None:
    """Every state is one of the two, and named once."""
    assert set(STATES) == {"queued", "running"} | ENDINGS
    assert len(STATES) == len(set(STATES)) == len(LIVE) + len(TERMINAL)


def test_conditions_are_not_states() -> None:
    """A condition says something of a task that runs; nothing follows from it."""
    assert set(CONDITIONS) == {"stalled", "input_required", "orphaned", "paused"}
    assert not set(CONDITIONS) & set(STATES)


@pytest.mark.parametrize("unknown", ["", "done", "RUNNING", "stalled"])
def test_an_unknown_state_leads_nowhere(unknown: str) -> None:
    """Neither from it nor to it."""
    assert not any(may_move(unknown, state) or may_move(state, unknown) for state in STATES)

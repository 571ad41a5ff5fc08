"""The table of allowed changes of a task's state."""

from __future__ import annotations

import itertools

import pytest

from outlive.domain.tasks.lifecycle import (
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


def test_transitions_are_those_of_the_design() -> None:
    """A queued task may run, or end without success. A running task may end in any way."""
    assert {(before, after) for before, afters in MOVES.items() for after in afters} == ALLOWED


def test_may_move_allows_only_the_transitions_of_the_table() -> None:
    """`may_move` allows only the changes in the table, and no change from a state to itself."""
    for before, after in itertools.product(STATES, STATES):
        assert may_move(before, after) == ((before, after) in ALLOWED), (before, after)


@pytest.mark.parametrize("ending", TERMINAL)
def test_no_transition_leaves_a_terminal_state(ending: str) -> None:
    """Every terminal state is final, including `lost`."""
    assert is_terminal(ending)
    assert not any(may_move(ending, after) for after in STATES)


@pytest.mark.parametrize("state", LIVE)
def test_live_state_may_move_to_every_ending_but_success(state: str) -> None:
    """A live state may change to every ending but success: failed, timed out, cancelled and lost."""
    assert not is_terminal(state)
    assert all(may_move(state, ending) for ending in ENDINGS - {"succeeded"})


def test_every_state_is_either_live_or_terminal() -> None:
    """Each state is either live or terminal."""
    assert set(STATES) == {"queued", "running"} | ENDINGS
    assert len(STATES) == len(set(STATES)) == len(LIVE) + len(TERMINAL)


def test_conditions_are_not_states() -> None:
    """A condition describes a running task, and no transition depends on it."""
    assert set(CONDITIONS) == {"stalled", "input_required", "orphaned", "paused"}
    assert not set(CONDITIONS) & set(STATES)


@pytest.mark.parametrize("unknown", ["", "done", "RUNNING", "stalled"])
def test_may_move_refuses_unknown_states(unknown: str) -> None:
    """`may_move` refuses states that do not exist."""
    assert not any(may_move(unknown, state) or may_move(state, unknown) for state in STATES)

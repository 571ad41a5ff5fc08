"""Whose turn it is: dependencies first, then the line, and never a count that could be wrong."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlive.domain.errors import UserError
from outlive.domain.queueing import Claim, Holder, Obstacles, lock, plan_turn, slots
from tests.unit.values import attempt


def holders(count: int) -> tuple[Holder, ...]:
    """Attempts that have not ended."""
    return tuple(Holder(task=f"t{number:07d}", attempt=1) for number in range(count))


def obstacles(**changes: Any) -> Obstacles:
    """Nothing in the way."""
    return Obstacles(attempt=attempt(ticket=7), claims=(), pending=(), failed=(), ahead=()).but(**changes)


def test_with_nothing_in_the_way_its_turn_has_come() -> None:
    """It waits for nobody."""
    assert plan_turn(obstacles()).has_come


def test_a_failed_dependency_is_the_end_whatever_else_there_is() -> None:
    """Nobody waits for the others then."""
    turn = plan_turn(obstacles(failed=(("tbad", "failed"),), pending=holders(2)))
    assert turn.refused == "task tbad, which it was to run after, is failed"
    assert not turn.has_come


def test_any_pending_dependency_is_worth_waking_for() -> None:
    """The first that ends may have failed."""
    turn = plan_turn(obstacles(pending=holders(3), claims=(Claim(name="l", room=1),), ahead=(holders(1),)))
    assert (turn.must_end, turn.how_many) == (holders(3), 1)


def test_the_line_is_joined_when_the_dependencies_are_met() -> None:
    """Not before: whoever waits for something else must not hold up those behind."""
    turn = plan_turn(obstacles(attempt=attempt(ticket=None), claims=(Claim(name="l", room=1),), ahead=((),)))
    assert turn.should_join
    assert not turn.has_come


@given(room=st.integers(1, 6), ahead=st.integers(0, 9))
@settings(max_examples=40, deadline=None)
def test_it_wakes_when_there_is_room_and_not_before(room: int, ahead: int) -> None:
    """After so many of those ahead have ended, fewer than the name has room for are left."""
    turn = plan_turn(obstacles(claims=(Claim(name="s", room=room),), ahead=(holders(ahead),)))
    if ahead < room:
        assert turn.has_come
    else:
        assert ahead - turn.how_many == room - 1
        assert len(turn.must_end) == ahead


def test_those_ahead_begin_first() -> None:
    """Even if there is room for both: whoever is right before it in line is waited for."""
    line = (*holders(1), *(holder.but(has_begun=False) for holder in holders(3)[1:]))
    turn = plan_turn(obstacles(claims=(Claim(name="s", room=9),), ahead=(line,)))
    assert turn.must_begin == line[-1]
    assert not turn.has_come


def test_every_claim_must_have_room() -> None:
    """The first without room is waited for; the others are looked at again afterwards."""
    claims = (Claim(name="a", room=2), Claim(name="b", room=1))
    turn = plan_turn(obstacles(claims=claims, ahead=(holders(1), holders(3))))
    assert turn.how_many == 3


def test_claims_as_they_are_written() -> None:
    """A name may contain an equals sign; slots and locks never meet."""
    assert slots("a=b=3") == Claim(name="slots:a=b", room=3)
    assert lock("x") == Claim(name="lock:x", room=1)


@pytest.mark.parametrize("text", ["", "x", "=1", "x=", "x=-1", "x=0", "x=1.5", "x=¹", "x=10001", " x=1", "x\n=1"])
def test_no_other_text_makes_a_claim(text: str) -> None:
    """A clear error, and no other."""
    with pytest.raises(UserError):
        slots(text)

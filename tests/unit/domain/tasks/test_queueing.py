"""The order of waiting tasks.

A task waits for its dependencies first, and then for its claims, each of which has a queue. A claim is a lock, or one
of a limited number of slots.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlive.domain.errors import UserError
from outlive.domain.tasks.queueing import Claim, Holder, Obstacles, lock, plan_turn, slots
from tests.unit.values import attempt


def holders(count: int) -> tuple[Holder, ...]:
    """Return attempts that have not ended."""
    return tuple(Holder(task=f"t{number:07d}", attempt=1) for number in range(count))


def obstacles(**changes: Any) -> Obstacles:
    """Return the obstacles of a task. Without arguments, there are none."""
    return Obstacles(attempt=attempt(ticket=7), claims=(), pending=(), failed=(), ahead=()).but(**changes)


def test_task_may_begin_when_there_are_no_obstacles() -> None:
    """A task without obstacles may begin."""
    assert plan_turn(obstacles()).has_come


def test_task_is_refused_when_a_dependency_has_failed() -> None:
    """If a dependency has failed, the task is refused at once, and does not wait for other dependencies."""
    turn = plan_turn(obstacles(failed=(("tbad", "failed"),), pending=holders(2)))
    assert turn.refused == "it was to run after task tbad, which is failed"
    assert not turn.has_come


def test_waiting_task_wakes_when_any_dependency_ends() -> None:
    """A task that waits for several dependencies wakes when any of them ends, because this one may have failed."""
    turn = plan_turn(obstacles(pending=holders(3), claims=(Claim(name="l", room=1),), ahead=(holders(1),)))
    assert (turn.must_end, turn.how_many) == (holders(3), 1)


def test_task_joins_the_queue_only_when_its_dependencies_are_met() -> None:
    """A task joins the queue only when its dependencies have ended. Until then, it does not delay other tasks."""
    turn = plan_turn(obstacles(attempt=attempt(ticket=None), claims=(Claim(name="l", room=1),), ahead=((),)))
    assert turn.should_join
    assert not turn.has_come


@given(room=st.integers(1, 6), ahead=st.integers(0, 9))
@settings(max_examples=40, deadline=None)
def test_task_wakes_when_its_claim_has_a_free_place(room: int, ahead: int) -> None:
    """A task wakes when one of the tasks that have its slot or lock ends."""
    turn = plan_turn(obstacles(claims=(Claim(name="s", room=room),), ahead=(holders(ahead),)))
    if ahead < room:
        assert turn.has_come
    else:
        assert ahead - turn.how_many == room - 1
        assert len(turn.must_end) == ahead


def test_task_waits_until_the_task_before_it_in_the_queue_has_begun() -> None:
    """A task waits until the task before it in the queue has begun, even if there are free slots for both."""
    line = (*holders(1), *(holder.but(has_begun=False) for holder in holders(3)[1:]))
    turn = plan_turn(obstacles(claims=(Claim(name="s", room=9),), ahead=(line,)))
    assert turn.must_begin == line[-1]
    assert not turn.has_come


def test_task_waits_until_every_claim_has_a_free_place() -> None:
    """A task waits until each of its claims has a free place, and then checks all of them again."""
    claims = (Claim(name="a", room=2), Claim(name="b", room=1))
    turn = plan_turn(obstacles(claims=claims, ahead=(holders(1), holders(3))))
    assert turn.how_many == 3


def test_claims_are_read_from_text() -> None:
    """The text of a claim may contain an equals sign. A slot and a lock may have the same name."""
    assert slots("a=b=3") == Claim(name="slots:a=b", room=3)
    assert lock("x") == Claim(name="lock:x", room=1)


@pytest.mark.parametrize("text", ["", "x", "=1", "x=", "x=-1", "x=0", "x=1.5", "x=¹", "x=10001", " x=1", "x\n=1"])
def test_slots_refuses_malformed_text(text: str) -> None:
    """Malformed text for slots raises `UserError`."""
    with pytest.raises(UserError):
        slots(text)

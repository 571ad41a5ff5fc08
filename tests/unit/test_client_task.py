"""The judgement of what a client runs by itself, from the looks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from outlive.domain.sessions.client_task import PATIENCE, Looks, look_again, restarted

if TYPE_CHECKING:
    from outlive.domain.sessions.client_task import Sight

GRACE_S = 60.0


def at(seconds: float, boot: str = "b1") -> str:
    """Return a tick."""
    return f"{boot} {round(seconds * 1e6)}"


def states(*looks: tuple[float, Sight]) -> list[str]:
    """Return the states of a child session after each look at a second, of which `present` is the state before."""
    found = Looks(state="running")
    known: list[str] = []
    for second, sight in looks:
        found = look_again(found, sight, at(second), GRACE_S)
        known.append(found.state)
    return known


R, U, L = "running", "unknown", "lost"
P: Sight = "present"
A: Sight = "absent"
X: Sight = "unknown"
LONG = PATIENCE * GRACE_S


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        ([(0, P), (99, P)], [R, R]),
        ([(0, A)], [U]),
        ([(0, A), (0, A)], [U, U]),
        ([(0, A), (59.9, A)], [U, U]),
        ([(0, A), (60, A)], [U, L]),
        ([(0, A), (9_999, A)], [U, L]),
        ([(0, A), (30, P), (60, A), (119, A), (120, A)], [U, R, U, U, L]),
        ([(0, X)], [U]),
        ([(0, X), (60, X)], [U, U]),
        ([(0, X), (LONG - 1, X), (LONG, X)], [U, U, L]),
        ([(0, X), (30, P), (LONG, X)], [U, R, U]),
        ([(0, A), (60, X)], [U, U]),
        ([(0, A), (60, X), (61, A)], [U, U, L]),
        ([(0, X), (LONG, A), (LONG + 60, A)], [U, U, L]),
        ([(0, X), (10, A), (LONG, X)], [U, U, U]),
        ([(0, A), (60, A), (61, X), (62, A)], [U, L, L, L]),
        ([(0, A), (60, A), (61, P), (62, A)], [U, L, R, U]),
    ],
)
def test_child_session_is_lost_only_after_two_looks_and_a_grace_period(
    looks: list[tuple[float, Sight]], expected: list[str]
) -> None:
    """A failed look proves no absence, two looks in one moment are one, and a look that finds it ends every doubt."""
    assert states(*looks) == expected


@pytest.mark.parametrize("sight", [A, X])
def test_grace_period_begins_anew_when_its_begin_cannot_be_compared(sight: Sight) -> None:
    """Ticks of another boot, or from the future, do not count. The look that finds such a tick is a first look."""
    for now in (at(9_999, "b2"), at(1)):
        found = look_again(look_again(Looks(state="running"), sight, at(100), GRACE_S), sight, now, GRACE_S)
        assert found.state == "unknown"
        assert now in (found.absent_since, found.unread_since)


def test_restarted_keeps_a_tick_that_can_be_compared() -> None:
    """The earlier tick is kept if it is of this boot and not in the future."""
    assert restarted(at(1), at(2)) == at(1)
    assert restarted(None, at(2)) == at(2)
    assert restarted(at(1, "b0"), at(2)) == at(2)
    assert restarted(at(3), at(2)) == at(2)


def test_second_look_is_needed_even_without_a_grace_period() -> None:
    """One look loses nothing, however short the grace period is."""
    first = look_again(Looks(state="running"), A, at(1), 0.0)
    assert first.state == "unknown"
    assert look_again(first, A, at(2), 0.0).state == "lost"

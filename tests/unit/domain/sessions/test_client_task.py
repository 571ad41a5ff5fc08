"""The states of child sessions, and of commands that a client itself runs in the background, after repeated checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from outlive.domain.sessions.client_task import PATIENCE, Looks, look_again, restarted

if TYPE_CHECKING:
    from outlive.domain.sessions.client_task import Sight

GRACE_S = 60.0


def at(seconds: float, boot: str = "b1") -> str:
    """Return a time in the form in which checks are recorded."""
    return f"{boot} {round(seconds * 1e6)}"


def states(*looks: tuple[float, Sight]) -> list[str]:
    """Return the state of a running child session after each check. A check is a time in seconds and a result."""
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
def test_child_session_is_lost_only_after_two_checks_and_a_grace_period(
    looks: list[tuple[float, Sight]], expected: list[str]
) -> None:
    """A child session is lost after two checks that did not find it, with the grace period between them.

    Checks at the same time count once. A check without a result proves nothing, and a success begins the count anew.
    """
    assert states(*looks) == expected


@pytest.mark.parametrize("sight", [A, X])
def test_grace_period_begins_again_when_its_start_cannot_be_compared(sight: Sight) -> None:
    """If the time of the first check is of another boot or in the future, the present check counts as the first."""
    for now in (at(9_999, "b2"), at(1)):
        found = look_again(look_again(Looks(state="running"), sight, at(100), GRACE_S), sight, now, GRACE_S)
        assert found.state == "unknown"
        assert now in (found.absent_since, found.unread_since)


def test_restarted_keeps_a_tick_that_can_be_compared() -> None:
    """The time of the first check is kept if it is of this boot and not in the future."""
    assert restarted(at(1), at(2)) == at(1)
    assert restarted(None, at(2)) == at(2)
    assert restarted(at(1, "b0"), at(2)) == at(2)
    assert restarted(at(3), at(2)) == at(2)


def test_second_check_is_needed_even_without_a_grace_period() -> None:
    """After one check that did not find it, a child session is not lost, even with a grace period of 0 s."""
    first = look_again(Looks(state="running"), A, at(1), 0.0)
    assert first.state == "unknown"
    assert look_again(first, A, at(2), 0.0).state == "lost"

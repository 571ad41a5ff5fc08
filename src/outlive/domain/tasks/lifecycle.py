"""The states of an attempt, and the table of allowed changes between them.

All other lists of states are derived from `MOVES` or compared with it, in SQL, docs and tests.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    State = Literal["queued", "running", "succeeded", "failed", "cancelled", "timed_out", "lost"]
    Condition = Literal["stalled", "input_required", "orphaned", "paused"]

MOVES: dict[str, tuple[str, ...]] = {
    "queued": ("running", "failed", "cancelled", "timed_out", "lost"),
    "running": ("succeeded", "failed", "cancelled", "timed_out", "lost"),
}

LIVE: tuple[State, ...] = ("queued", "running")
TERMINAL: tuple[State, ...] = ("succeeded", "failed", "cancelled", "timed_out", "lost")
STATES: tuple[State, ...] = (*LIVE, *TERMINAL)

# Conditions of a running task. A condition is not a state, because it does not change which states may follow.
CONDITIONS: tuple[Condition, ...] = ("stalled", "input_required", "orphaned", "paused")


def is_terminal(state: str) -> bool:
    """Return whether an attempt in this state has ended."""
    return state in TERMINAL


def may_move(before: str, after: str) -> bool:
    """Return whether an attempt may change from one state to another."""
    return after in MOVES.get(before, ())

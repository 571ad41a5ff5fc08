"""The life of an attempt: its states and the one table of moves between them.

Everything else that knows about states - the CHECKs and the trigger in SQL, the diagram in the
docs, the property tests - is derived from `MOVES` or compared with it.
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

# What may be said of a task that runs; not states, because nothing follows from them by itself.
CONDITIONS: tuple[Condition, ...] = ("stalled", "input_required", "orphaned", "paused")


def is_terminal(state: str) -> bool:
    """Whether an attempt in this state has ended."""
    return state in TERMINAL


def may_move(before: str, after: str) -> bool:
    """Whether the table of moves allows this step. Terminal is sticky: it has no row."""
    return after in MOVES.get(before, ())

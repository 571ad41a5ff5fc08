"""Changes by other processes to paths that the task had already restored."""

from __future__ import annotations

from outlive.domain.effects.effects import Unattributed
from outlive.domain.effects.replay.path_history import UNREADABLE


class ForeignChanges:
    """The paths that other processes changed after the task had restored them."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[int, str]] = {}
        self._others: dict[str, None] = {}

    def look(self, at: int, state: str, path: str) -> None:
        """Record the state of a restored path that no process has open for writing."""
        self._held[path] = at, state

    def as_left(self, path: str, last_at: int, final: str) -> tuple[str, bool]:
        """Return the state in which the task left a path, and whether it changed later.

        The second part of the result is True if another process changed the path after the task.
        """
        at, held = self._held.get(path, (0, final))
        if at <= last_at or final in (held, UNREADABLE):
            return final, False
        self._others[path] = None
        return held, True

    def changed(self, tops: tuple[str, ...]) -> tuple[Unattributed, ...]:
        """Return the paths that other processes changed.

        Each path has a name relative to its worktree, whose top is one of `tops`.
        """
        inner = sorted(tops, key=len, reverse=True)
        named = ((path, next((top for top in inner if path.startswith(top)), "")) for path in self._others)
        return tuple(Unattributed(path=path, name=path[len(top) :], how="changed") for path, top in named)

"""What happened to paths between a task's last call about them and its end: whose doing it was nobody saw."""

from __future__ import annotations

from outlive.domain.effects import Unattributed
from outlive.domain.story import UNREADABLE


class Between:
    """What paths held when whoever in the task had changed them was done, and which are another way at the end."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[int, str]] = {}
        self._others: dict[str, None] = {}

    def look(self, at: int, state: str, path: str) -> None:
        """It held this then."""
        self._held[path] = at, state

    def as_left(self, path: str, last_at: int, final: str) -> tuple[str, bool]:
        """What the task left in a path that it last touched then, and whether somebody else changed it since."""
        at, held = self._held.get(path, (0, final))
        if at <= last_at or final in (held, UNREADABLE):
            return final, False
        self._others[path] = None
        return held, True

    def changed(self, tops: tuple[str, ...]) -> tuple[Unattributed, ...]:
        """Those that are another way, by the names that their trees have for them."""
        inner = sorted(tops, key=len, reverse=True)
        named = ((path, next((top for top in inner if path.startswith(top)), "")) for path in self._others)
        return tuple(Unattributed(path=path, name=path[len(top) :], how="changed") for path, top in named)

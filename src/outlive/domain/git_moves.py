"""Moves of git's own state, in the order in which they were seen."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Move = tuple[int, str, int]
    """When, what, and by whom."""


class GitMoves:
    """What moved; by the same one several times in a row it is told once."""

    def __init__(self) -> None:
        self._moves: list[Move] = []
        self._tried: dict[int, tuple[str, str]] = {}
        """Those that would have removed a directory, with what it was: git tries that wherever it removes a ref."""

    def add(self, at: int, by: int, what: str | None, removed: tuple[str, str] | None) -> None:
        """A further one, if it is one at all; with the directory that was to be `removed` and what it was."""
        last = len(self._moves) - 1
        if what is None or (last >= 0 and last not in self._tried and self._moves[last][1:] == (what, by)):
            return
        if removed is not None:
            self._tried[last + 1] = removed
        self._moves.append((at, what, by))

    def told(self, is_there: Callable[[str, str], bool]) -> list[Move]:
        """All but what was tried in vain, and what a worktree brought with it, or took along."""
        found = [move for number, move in enumerate(self._moves) if not self._is_in_vain(number, is_there)]
        worktrees = {what for _, what, _ in found if what.startswith("worktree ")}
        return [move for move in found if move[1].partition(" of ")[2] not in worktrees]

    def _is_in_vain(self, number: int, is_there: Callable[[str, str], bool]) -> bool:
        tried = self._tried.get(number)
        return tried is not None and is_there(*tried)

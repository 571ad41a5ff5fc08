"""Paths that a task has changed and not restored, with the data to check them."""

from __future__ import annotations

from outlive.domain.effects.effects import Window
from outlive.domain.effects.replay.path_history import ABSENT, UNREADABLE, is_as_found
from outlive.domain.timestamps import from_micros
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from outlive.domain.effects.replay.path_history import Look


class LeftPath(Value):
    """One path that a task has changed and not restored."""

    path: str
    name: str
    """The path to report.

    If a directory was moved with all its content, this is the directory around the path. Otherwise it is the path
    itself.
    """
    scope: str
    """The top of the worktree to which the path belongs."""
    is_stash: bool
    opened_at: int
    """The time since which the path differs from the state in which the task found it, in microseconds since 1970."""
    by: str
    """The command that changed the path at the time `opened_at`."""
    found: str
    """The state in which the task found the path."""
    left: str
    """The state in which the task left the path."""
    must_be_same: bool
    """Whether the path counts as restored only if the first directory itself is back.

    A new directory with the same name does not count.
    """
    written: int
    """The time of the file's last write before the task ended. 0 if this time is not known or is not needed."""

    def is_left(self, look: Look, written_at: Callable[[str], int]) -> bool:
        """Return whether the path is still in the state in which the task left it."""
        now = look(self.path, self.found)
        if is_as_found(now, self.found, must_be_same=self.must_be_same):
            return False
        # Compare with the second `look` last, because it reads the file again. It is needed only if the two states
        # have different kinds of content ids.
        is_same = self.left == now or UNREADABLE in (now, self.left) or self.left == look(self.path, self.left)
        if not is_same:
            return False
        if not self.written:
            return True
        written = written_at(self.path)
        return written in (0, self.written)


def can_be_left(found: str) -> bool:
    """Return whether a path is known to have existed before the task changed it.

    Only then can the task have left the path changed. A path that did not exist is a new path.
    """
    return found not in (UNREADABLE, "s", ABSENT)


def windows_left(paths: Iterable[LeftPath]) -> tuple[Window, ...]:
    """Return the unrestored changes of a task, in groups.

    The changed files of each worktree are one group, and so is each changed stash.
    """
    groups: dict[tuple[str, bool], list[LeftPath]] = {}
    for each in paths:
        groups.setdefault((each.scope, each.is_stash), []).append(each)
    found = []
    for (scope, _), group in groups.items():
        first = min(group, key=lambda each: each.opened_at)
        found.append(
            Window(
                scope=scope,
                paths=tuple(sorted({each.name for each in group})),
                opened_at=from_micros(first.opened_at),
                closed_at=None,
                by=first.by,
            )
        )
    return tuple(sorted(found, key=lambda window: window.opened_at))

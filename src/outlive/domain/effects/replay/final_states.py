"""The states in which a task left its paths, before other processes changed them."""

from __future__ import annotations

from outlive.domain.effects.replay.path_history import ABSENT, UNREADABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from outlive.domain.effects.replay.path_history import PathHistory, Span

_SHORTEST_POSSIBLE_US = 50_000
_KERNELS_CLOCK_LAGS_US = 20_000


class FinalStates:
    """The state in which a task left each path, with its last write and last change."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[int, str]] = {}
        """The time at which each path was checked, and its state at this time."""
        self._written: dict[str, int] = {}
        self._touched: dict[str, int] = {}
        self._late_of: dict[str, int] = {}
        """The time of the task's end, for each path that changed before the later check."""
        self.taken: set[str] = set()
        """Paths whose last recorded system call by the task moved or removed them."""
        self.late: set[str] = set()
        """Paths that another process changed after the task's end.

        The state in which the task left them is not known.
        """
        self._ended: int | None = None
        self._changed_at: Callable[[str], int] = lambda _: 0
        self.is_watched = False
        """Whether file events were watched instead of system calls.

        Then the last change of a path may not be recorded.
        """

    def add(self, at: int, state: str, path: str, *moments: str) -> None:
        """Record that Outlive has checked the state of a path.

        `moments` are up to three times: the file's last write, the file's last change by the kernel's clock, and the
        task's end. The task's end is given only if the path changed between the end and the check.
        """
        written, touched, ended = (*moments, "", "", "")[:3]
        self.held[path] = at, state
        self._late_of.pop(path, None)
        if ended.isdecimal():
            self._late_of[path] = int(ended)
        if written.isdecimal() and int(written) <= at:
            self._written[path] = int(written)
        if touched.isdecimal():
            self._touched[path] = int(touched)

    def end(self, at: int | None, changed_at: Callable[[str], int]) -> None:
        """Set the time of the task's end, or None while the task runs."""
        self._ended, self._changed_at = at, changed_at

    def as_left(self, path: str, history: PathHistory, found: str) -> str:
        """Return the state in which the task left a path.

        `found` is the present state of the path. Returns `UNREADABLE` if another process has changed the path, and the
        state before that change is not known.
        """
        if not self._is_anothers(path, history.last_at, found):
            return found
        if path in self.taken:
            return ABSENT
        if self.is_watched:
            return history.state
        self.late.add(path)
        return UNREADABLE

    def is_removed_late(self, path: str, state: str) -> bool:
        """Return whether another process removed a path after the task's end."""
        is_late = state == ABSENT and path not in self.taken and self._is_anothers(path, 0, state)
        if is_late:
            self.late.add(path)
        return is_late

    def _is_anothers(self, path: str, last_at: int, found: str) -> bool:
        """Return whether another process brought a path into the state `found`.

        Only changes after the task's end count. A process that the task left running counts as a part of the task.
        Returns False for a directory that was not checked at the task's end: its time proves no change, because the
        time also changes when an entry changes.
        """
        if path in self.held or self._ended is None:
            return last_at <= self._late_of.get(path, -1)
        return last_at <= self._ended < self._changed_at(path) and found[:1] != "d"

    def find_unseen_end(self, path: str, history: PathHistory, final: str) -> None:
        """Record when the task restored a path, if this was no longer observed.

        Directories are left out, because the time of a directory changes whenever an entry changes.
        """
        at = self._changed_unseen(path, history.last_at)
        if not at or not history.is_as_found(final) or final[:1] == "d":
            return
        if path in self.taken:
            history.found(ABSENT)
        if history.is_open:
            history.last_at = at
        else:
            self._written[path] = at

    def _changed_unseen(self, path: str, last_at: int) -> int:
        """Return the time of a path's last change, if this change was not observed.

        The time is by the kernel's clock. Returns 0 if there was no change between `last_at` and the task's end, or if
        the path was checked at the end.
        """
        if path in self.held:
            return 0
        changed = self._changed_at(path)
        return changed if last_at < changed and (self._ended is None or changed <= self._ended) else 0

    def state_of(self, path: str) -> str:
        """Return the state of a path at the task's end, or "" if it was not checked."""
        return self.held.get(path, (0, ""))[1]

    def written_when_left(self, path: str, last_at: int) -> int:
        """Return the time of a file's last write before the task's end, or 0 if unknown.

        The time is unknown if the task used the file again after the check, because a process that the task left
        running may have written to the file again.
        """
        at, state = self.held.get(path, (0, ""))
        return self._written.get(path, 0) if at >= last_at and state[:1] in ("f", "u") else 0

    def written_at(self, path: str) -> int:
        """Return the time of a path's last write, or 0 if this time is not known."""
        return self._written.get(path, 0)

    def forget_write(self, path: str) -> None:
        """Delete the time of a path's last write, because another process made the write."""
        self._written.pop(path, None)

    def was_touched(self, path: str, history: PathHistory) -> bool:
        """Return whether a path may have changed since the first system call about it.

        The kernel's time of the path's last change shows this. If this time is not known, the function returns True.
        """
        touched = self._touched.get(path, 0)
        return not touched or touched >= history.first_at - _KERNELS_CLOCK_LAGS_US

    def possible(self, histories: Iterable[tuple[str, PathHistory]]) -> Iterable[tuple[str, Span]]:
        """Yield each file that may have had other content for a while.

        With each file comes the span of time in which its content may have been different.
        """
        for path, history in histories:
            written = self._written.get(path, 0)
            if (
                not history.windows
                and history.baseline[:1] in "fu"
                and written - history.last_at > _SHORTEST_POSSIBLE_US
            ):
                yield path, (history.last_at, written, history.last_by)

    def is_changed(self, path: str, history: PathHistory) -> bool:
        """Return whether a path may differ from the state in which the task found it."""
        if history.baseline in (ABSENT, "s"):
            return False
        return self.is_doubtful(path, history) or (history.baseline != UNREADABLE and history.is_open)

    def is_doubtful(self, path: str, history: PathHistory) -> bool:
        """Return whether a path changed, but its state before or after is not known."""
        if history.baseline == UNREADABLE:
            return self.is_watched or self.was_touched(path, history)
        is_lost = history.state == UNREADABLE and history.baseline not in (ABSENT, "s")
        return (is_lost and not history.is_open and self.was_touched(path, history)) or self.is_unsure(path, history)

    def is_unsure(self, path: str, history: PathHistory) -> bool:
        """Return whether a file was written, but is too large to compare its contents."""
        is_same = history.was_written and history.baseline[:1] == "u" and not history.is_open
        return is_same and self.was_touched(path, history)

    def is_rewritten(self, path: str, history: PathHistory) -> bool:
        """Return whether a path was written and has the same content as before.

        If the kernel's time of the last change is earlier than the first system call about the path, the write has
        failed and does not count.
        """
        is_same = not history.windows and history.state != UNREADABLE
        return is_same and history.baseline[:1] != "d" and self.was_touched(path, history)

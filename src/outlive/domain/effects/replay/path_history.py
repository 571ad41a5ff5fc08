"""The history of one path: its first state, and the times at which it differed."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Span = tuple[int, int | None, int]
    Look = Callable[[str, str], str]
    """A function that returns the present state of a path.

    Its second argument is the state with which the result will be compared. The result has the same form.
    """

ABSENT = "0"
STAT = "o"
"""The first letter of a path's state that has stat fields, but no content id."""
UNREADABLE = "?"
"""The state of a path that cannot be read."""
_MOST_WINDOWS = 16


class PathHistory:
    """The history of a path whose state at the start of the task is known."""

    __slots__ = (
        *("baseline", "closed", "doubted", "first_at", "last_at", "last_by", "left_after", "must_be_same"),
        *("opened_at", "opened_by", "state", "unseen", "untold", "was_written"),
    )

    def __init__(self, baseline: str, first_at: int = 0) -> None:
        self.baseline = self.state = baseline
        self.first_at = first_at
        self.opened_at: int | None = None
        self.opened_by = 0
        self.closed: list[tuple[int, int, int]] = []
        self.last_at = self.last_by = 0
        self.doubted: tuple[int, int] | None = None
        """The first change after which the path could not be read.

        Up to this change, the path had its last known state.
        """
        self.unseen: tuple[int, int] | None = None
        """The last change of the path, if the state after it is not known. Otherwise None."""
        self.left_after: tuple[int, int] | None = None
        """The last change of the path before its directory was moved away.

        The state of the path after this change becomes known only when the directory comes back.
        """
        self.must_be_same = False
        """Whether a new directory with this name does not count as restored.

        This is True if no system call has named the content of the first directory. Then only the first directory
        itself counts.
        """
        self.was_written = False
        """Whether the file was opened for writing. A move of the file alone does not count as writing."""
        self.untold = 0
        """The number of spans that were left out of `windows`.

        Only the first spans and the last span in which the path differed are kept.
        """

    @classmethod
    def of_arrival(cls, at: int, by: int) -> PathHistory:
        """Return the history of a path that got its name when its directory was moved."""
        history = cls(ABSENT)
        history.last_at, history.last_by = at, by
        return history

    def change(self, at: int, by: int, before: str) -> None:
        """Record a system call that is about to change the path from the state `before`."""
        self.found(before)
        self.last_at, self.last_by = self.unseen = at, by

    def leave(self, at: int, by: int) -> None:
        """Record that the directory of the path was moved away."""
        if not self.is_open:
            self.left_after = self.unseen
        self.last_at, self.last_by = at, by
        self.found(ABSENT)

    def found(self, state: str, written: int = 0) -> None:
        """Record the state of the path after its last known change or write.

        `written` is the time of the last write, or 0 if it is not known. This time is needed because the observed
        system calls show only when a file was opened: `slow > a` empties the file at once, but may write much later.
        If the state is `UNREADABLE`, the path counts as neither changed nor restored.
        """
        self.state, self.unseen = state, None
        if state == UNREADABLE:
            self.doubted = self.doubted or (self.last_at, self.last_by)
            return
        is_same = self.is_as_found(state)
        if not is_same and self.opened_at is None:
            self.opened_at, self.opened_by = self.doubted or (self.last_at, self.last_by)
        elif is_same and self.opened_at is not None:
            if len(self.closed) == _MOST_WINDOWS:
                self.closed.pop()
                self.untold += 1
            is_content = self.was_written and state[:1] in ("f", "u")
            self.closed.append((self.opened_at, max(self.last_at, written if is_content else 0), self.opened_by))
            self.opened_at = None
        if state != ABSENT:
            if self.is_open and self.left_after is not None:
                self.opened_at, self.opened_by = self.left_after
            self.left_after = None
        self.doubted = None

    def is_as_found(self, state: str) -> bool:
        """Return whether a state of the path equals its first state."""
        return is_as_found(state, self.baseline, must_be_same=self.must_be_same)

    @property
    def is_open(self) -> bool:
        """Whether the path is known to differ from its first state."""
        return self.opened_at is not None

    @property
    def windows(self) -> list[Span]:
        """The spans in which the path differed from its first state.

        Each span names the process that made the first change in the span.
        """
        still: list[Span] = [] if self.opened_at is None else [(self.opened_at, None, self.opened_by)]
        return [*self.closed, *still]


def is_as_found(state: str, found: str, *, must_be_same: bool) -> bool:
    """Return whether a state of a path equals the state in which the task found it.

    `found` is the state in which the task found the path. Two directories count as equal. With `must_be_same`, they
    count as equal only if they are the same directory.
    """
    return state == found or (state[:1] == found[:1] == "d" and not must_be_same)


class DisplacedPathHistory(PathHistory):
    """The history of a path below the old name of a moved directory.

    The path counts as new until the content of the moved directory is known. All system calls about the path are
    recorded, so that the history can be rebuilt with the first state that was found then.
    """

    __slots__ = ("heard", "heard_before_back", "home", "left_at", "left_by")

    def __init__(self, home: str, left_at: int, left_by: int, first_at: int) -> None:
        super().__init__(ABSENT, first_at)
        self.home = home
        self.left_at, self.left_by = left_at, left_by
        self.heard: list[tuple[int, int, str | None]] = []
        self.heard_before_back: int | None = None

    def change(self, at: int, by: int, before: str) -> None:
        """Record a change, and keep the system call in case the history is rebuilt."""
        super().change(at, by, before)
        self.heard.append((at, by, before))

    def leave(self, at: int, by: int) -> None:
        """Record that the directory of the path was moved away.

        The system call is kept in case the history is rebuilt.
        """
        super().leave(at, by)
        self.heard.append((at, by, None))

    def come_back(self, at: int, by: int) -> None:
        """Record that the moved directory is back, and that the path has its first state."""
        self.change(at, by, ABSENT)
        if self.heard_before_back is None:
            self.heard_before_back = len(self.heard)

    @property
    def held_when_back(self) -> str | None:
        """The path's state when the moved directory came back, or None if it is not back."""
        if self.heard_before_back is None:
            return None
        later = self.heard[self.heard_before_back :]
        return (later[0][2] or ABSENT) if later else self.state

    def told_with(self, baseline: str) -> PathHistory:
        """Return this history, rebuilt with `baseline` as the first state of the path."""
        if baseline == ABSENT:
            return self
        history = PathHistory(baseline, self.left_at)
        history.leave(self.left_at, self.left_by)
        for at, by, before in self.heard:
            if before is None:
                history.leave(at, by)
            else:
                history.change(at, by, before)
        history.must_be_same = self.must_be_same
        history.found(self.state)
        return history

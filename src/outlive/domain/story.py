"""What happened to one path while a task ran: what it held at first, and the spans in which it did not."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Span = tuple[int, int | None, int]
    Look = Callable[[str, str], str]
    """What a path holds now, in the words of what it is to be compared with."""

ABSENT = "0"
STAT = "o"
"""How what is only known by what stat says of it begins."""
UNREADABLE = "?"
"""What cannot be looked at."""
_MOST_WINDOWS = 16


class Story:
    """The story of a path of which it is known what it held at first."""

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
        """The change after which it could not be looked at, when it was as found before."""
        self.unseen: tuple[int, int] | None = None
        """The last change, while nobody has looked at what came of it."""
        self.left_after: tuple[int, int] | None = None
        """The same, when its directory took it along: what is found when that is back tells of it."""
        self.must_be_same = False
        """Whether another directory is not as good as the first one: what that held has not been named."""
        self.was_written = False
        """Whether it was opened for writing, and not only moved."""
        self.untold = 0
        """Windows that there was no room for: all but the first ones and the last."""

    @classmethod
    def of_arrival(cls, at: int, by: int) -> Story:
        """The story of what came with its directory, to where nothing was."""
        story = cls(ABSENT)
        story.last_at, story.last_by = at, by
        return story

    def change(self, at: int, by: int, before: str) -> None:
        """Something is about to happen to it; until now it holds this."""
        self.found(before)
        self.last_at, self.last_by = self.unseen = at, by

    def leave(self, at: int, by: int) -> None:
        """The directory it lies in takes it along."""
        if not self.is_open:
            self.left_after = self.unseen
        self.last_at, self.last_by = at, by
        self.found(ABSENT)

    def found(self, state: str, written: int = 0) -> None:
        """It holds this now, since the last change that we know of, or since it was written last.

        The call that opened a file tells only when that began: `slow > a` empties it at once. What cannot
        be looked at proves nothing: it depends on what is found next since when that was so.
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
        """Whether this is what it held at first."""
        return state == self.baseline or (
            # One that was removed and made again is told by what is in it; one that was put in its place is not.
            state[:1] == self.baseline[:1] == "d" and not self.must_be_same
        )

    def is_left_so(self, path: str, look: Look) -> bool:
        """Whether it is as it was left; what somebody else has changed since is in their hands."""
        now = look(path, self.baseline)
        if self.is_as_found(now):
            return False
        return UNREADABLE in (now, self.state) or self.state in (now, look(path, self.state))

    @property
    def is_open(self) -> bool:
        """Whether it is not as it was, as far as that can be told."""
        return self.opened_at is not None

    @property
    def windows(self) -> list[Span]:
        """From when to when, opened by whom."""
        still: list[Span] = [] if self.opened_at is None else [(self.opened_at, None, self.opened_by)]
        return [*self.closed, *still]


class Displaced(Story):
    """Something under a name whose directory had left: whether it is new depends on what that one held.

    Until that is known it is taken to be new, and what is heard of it is kept.
    """

    __slots__ = ("heard", "heard_before_back", "home", "left_at", "left_by")

    def __init__(self, home: str, left_at: int, left_by: int, first_at: int) -> None:
        super().__init__(ABSENT, first_at)
        self.home = home
        self.left_at, self.left_by = left_at, left_by
        self.heard: list[tuple[int, int, str | None]] = []
        self.heard_before_back: int | None = None

    def change(self, at: int, by: int, before: str) -> None:
        """As of any; and keep it."""
        super().change(at, by, before)
        self.heard.append((at, by, before))

    def leave(self, at: int, by: int) -> None:
        """As of any; and keep it."""
        super().leave(at, by)
        self.heard.append((at, by, None))

    def come_back(self, at: int, by: int) -> None:
        """The directory that had left has its name again: what is there next was there at first."""
        self.change(at, by, ABSENT)
        if self.heard_before_back is None:
            self.heard_before_back = len(self.heard)

    @property
    def held_when_back(self) -> str | None:
        """What it held when the directory was back; None if that never was."""
        if self.heard_before_back is None:
            return None
        later = self.heard[self.heard_before_back :]
        return (later[0][2] or ABSENT) if later else self.state

    def told_with(self, baseline: str) -> Story:
        """The story anew, now that it is known what the path held at first."""
        if baseline == ABSENT:
            return self
        story = Story(baseline, self.left_at)
        story.leave(self.left_at, self.left_by)
        for at, by, before in self.heard:
            if before is None:
                story.leave(at, by)
            else:
                story.change(at, by, before)
        story.must_be_same = self.must_be_same
        story.found(self.state)
        return story

"""How paths were left: what was looked at when the task had ended, and what of that others were faster to change."""

from __future__ import annotations

from outlive.domain.story import ABSENT, UNREADABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from outlive.domain.story import Span, Story

_SHORTEST_POSSIBLE_US = 50_000
_KERNELS_CLOCK_LAGS_US = 20_000


class Finals:
    """What each path held, when it was written last, and when the kernel knows of a change of it."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[int, str]] = {}
        """When it was looked at, and what it held."""
        self._written: dict[str, int] = {}
        self._touched: dict[str, int] = {}
        self._late_of: dict[str, int] = {}
        """Paths that changed after the end, which was then, before they were looked at."""
        self.taken: set[str] = set()
        """Paths that the task's last call about them took away."""
        self.late: set[str] = set()
        """Paths of which nobody knows how the task left them, because of what somebody did to them after its end."""
        self._ended: int | None = None
        self._changed_at: Callable[[str], int] = lambda _: 0
        self.is_watched = False
        """Whether files were watched, so that the last change need not have been seen."""

    def add(self, at: int, state: str, path: str, *moments: str) -> None:
        """A path was looked at: when it was written and touched, and when the task had ended, if that was earlier."""
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
        """The task has ended then, if it has. What is not looked at yet changed at a time that the kernel knows."""
        self._ended, self._changed_at = at, changed_at

    def as_left(self, path: str, story: Story, found: str) -> str:
        """How the task left a path of which this was found; unknown if somebody was faster to change it."""
        if not self._is_anothers(path, story.last_at, found):
            return found
        if path in self.taken:
            return ABSENT
        if self.is_watched:
            return story.state
        self.late.add(path)
        return UNREADABLE

    def is_removed_late(self, path: str, state: str) -> bool:
        """Whether a path outside is gone, as it was found to be, that the task had not taken away."""
        is_late = state == ABSENT and path not in self.taken and self._is_anothers(path, 0, state)
        if is_late:
            self.late.add(path)
        return is_late

    def _is_anothers(self, path: str, last_at: int, found: str) -> bool:
        """Whether what was found is somebody else's doing, after the end: the task had touched the path `last_at`.

        Whoever was left behind counts as the task. Which directory it is changes with no entry of it.
        """
        if path in self.held or self._ended is None:
            return last_at <= self._late_of.get(path, -1)
        return last_at <= self._ended < self._changed_at(path) and found[:1] != "d"

    def find_unseen_end(self, path: str, story: Story, final: str) -> None:
        """Whoever put it back when nobody looked any more did so when it changed last, as far as anybody knows.

        A directory changes with its entries: that tells nothing of it.
        """
        at = self._changed_unseen(path, story.last_at)
        if not at or not story.is_as_found(final) or final[:1] == "d":
            return
        if path in self.taken:
            story.found(ABSENT)
        if story.is_open:
            story.last_at = at
        else:
            self._written[path] = at

    def _changed_unseen(self, path: str, last_at: int) -> int:
        """When the kernel knows of a change of a path, after the last call about it; 0 if it was looked at since."""
        if path in self.held:
            return 0
        changed = self._changed_at(path)
        return changed if last_at < changed and (self._ended is None or changed <= self._ended) else 0

    def state_of(self, path: str) -> str:
        """What it held; empty if nobody looked."""
        return self.held.get(path, (0, ""))[1]

    def is_written_since(self, path: str, last_at: int, written: int) -> bool:
        """Whether a file was written after that look, be it with what it held; `written` is when, 0 if unknown.

        Whoever was left behind may have gone on since: a call that is later than the look tells more than it.
        """
        at, state = self.held.get(path, (0, ""))
        then = self._written.get(path)
        return at >= last_at and state[:1] in ("f", "u") and 0 not in (then or 0, written) and then != written

    def written_at(self, path: str) -> int:
        """When it was written last; 0 if that is not known."""
        return self._written.get(path, 0)

    def forget_write(self, path: str) -> None:
        """It was somebody else who wrote to it last."""
        self._written.pop(path, None)

    def was_touched(self, path: str, story: Story) -> bool:
        """Whether the kernel knows of a change since the first that we heard of it, or cannot be asked."""
        touched = self._touched.get(path, 0)
        return not touched or touched >= story.first_at - _KERNELS_CLOCK_LAGS_US

    def possible(self, stories: Iterable[tuple[str, Story]]) -> Iterable[tuple[str, Span]]:
        """A file that was opened for writing and last written a while later: what it held meanwhile nobody knows."""
        for path, story in stories:
            written = self._written.get(path, 0)
            if not story.windows and story.baseline[:1] in "fu" and written - story.last_at > _SHORTEST_POSSIBLE_US:
                yield path, (story.last_at, written, story.last_by)

    def is_changed(self, path: str, story: Story) -> bool:
        """Whether it is not as it was, or nobody can say that it is."""
        if story.baseline in (ABSENT, "s"):
            return False
        return self.is_doubtful(path, story) or (story.baseline != UNREADABLE and story.is_open)

    def is_doubtful(self, path: str, story: Story) -> bool:
        """Whether it was changed, and nobody knows from what, or to what: no more can be said of it."""
        if story.baseline == UNREADABLE:
            return self.is_watched or self.was_touched(path, story)
        is_lost = story.state == UNREADABLE and story.baseline not in (ABSENT, "s")
        return (is_lost and not story.is_open and self.was_touched(path, story)) or self.is_unsure(path, story)

    def is_unsure(self, path: str, story: Story) -> bool:
        """Whether it only looks as before: a large file is known by its size and time, and a time can be set."""
        is_same = story.was_written and story.baseline[:1] == "u" and not story.is_open
        return is_same and self.was_touched(path, story)

    def is_rewritten(self, path: str, story: Story) -> bool:
        """Whether it was written and holds the same; where the kernel knows of no change, it was tried in vain."""
        is_same = not story.windows and story.state != UNREADABLE
        return is_same and story.baseline[:1] != "d" and self.was_touched(path, story)

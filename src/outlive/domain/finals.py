"""How paths were left: what was looked at when the task had ended."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

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

    def add(self, at: int, state: str, path: str, written: str = "", touched: str = "") -> None:
        """A path was looked at."""
        self.held[path] = at, state
        if written.isdecimal() and int(written) <= at:
            self._written[path] = int(written)
        if touched.isdecimal():
            self._touched[path] = int(touched)

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

"""Effects as values: windows, net changes, and how certain they are."""

from __future__ import annotations

from outlive.domain.timestamps import timedelta
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Literal

    from outlive.domain.git.comparison import How

    Level = Literal["observed", "partial", "watched", "compared", "declared", "unknown"]


SOMEBODY = "somebody"


class Window(Value):
    """A span of time in which shared paths were not as the task found them."""

    scope: str
    paths: tuple[str, ...]
    opened_at: datetime
    closed_at: datetime | None
    by: str
    is_left: bool = False
    """Whether the task has ended, so that it will not restore anything any more."""
    uncompared: int = 0
    """The number of the task's further paths that were not compared, so that they may belong to the window."""

    @property
    def is_open(self) -> bool:
        """Whether the paths still differ from how the task found them."""
        return self.closed_at is None

    def lasted(self, now: datetime) -> timedelta | None:
        """Return how long the window was open; None if the clock was set back since."""
        span = (self.closed_at or now) - self.opened_at
        return span if span >= timedelta() else None

    @property
    def is_attributed(self) -> bool:
        """Whether it is known which process opened the window."""
        return self.by != SOMEBODY


class Unattributed(Value):
    """A path that changed while the task ran; no process was seen changing it."""

    path: str
    name: str
    """The path below the project's top; the whole path if it lies elsewhere."""
    how: How
    was_tracked: bool = True


class Effects(Value):
    """What a task touched, as far as it is known."""

    level: Level = "unknown"
    gaps: tuple[str, ...] = ()
    windows: tuple[Window, ...] = ()
    changed: tuple[str, ...] = ()
    """Paths of the project with another content than at the start."""
    gone: tuple[str, ...] = ()
    """The changed paths that do not exist any more."""
    created: tuple[str, ...] = ()
    """New paths. A directory is listed only if nothing was created in it, or if it came with its content."""
    whole: frozenset[str] = frozenset()
    """Removed or created directories that stand for everything in them."""
    restored: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    """Paths that were written and had the same content as before at every check."""
    possible: tuple[Window, ...] = ()
    """Files that were being written for a while, with unknown content, and are the same before and after."""
    git: tuple[tuple[datetime, str, str], ...] = ()
    """Changes of git's own state: when, what, and by which command."""
    outside: tuple[str, ...] = ()
    """Paths outside of the project and of temporary directories."""
    remotes: tuple[str, ...] = ()
    unobserved_since: datetime | None = None
    why_unseen: str | None = None
    """Why the task's system calls were not observed."""
    moved: str | None = None
    """The changes of git's state while the task ran that no process was seen making, in words."""
    meanwhile: tuple[str, ...] = ()
    """The part of `moved` that would count as drift after the end: HEAD, configuration and the like."""
    unattributed: tuple[Unattributed, ...] | None = None
    """None if nothing was compared. The list may be shortened. `unattributed_in_all` counts all changes."""
    unattributed_in_all: int = 0
    uncompared: tuple[str, ...] = ()
    """Words for the parts that the comparison may have missed."""
    further: tuple[str, ...] = ()
    """Further worktrees, outside of the project, in which the task worked as well."""
    is_in_repository: bool = True
    """Whether the task works in a repository: outside of one, contents are not compared."""

    @property
    def is_outside_of(self) -> str:
        """The words for the place that the `outside` paths lie outside of."""
        return "outside of the project" if self.is_in_repository else "outside of any repository"

    @property
    def is_attributed(self) -> bool:
        """Whether it is known that the task itself made the changes."""
        return self.level in ("observed", "partial")

    @property
    def is_empty(self) -> bool:
        """Whether the task is not known to have touched anything shared."""
        files = self.windows or self.changed or self.created or self.rewritten
        return not (files or self.git or self.outside or self.remotes)

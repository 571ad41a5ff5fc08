"""The data of a task's effects: windows, net changes, and how certain they are."""

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
    """A span in which paths differed from the state in which the task found them."""

    scope: str
    paths: tuple[str, ...]
    opened_at: datetime
    closed_at: datetime | None
    by: str
    is_left: bool = False
    """Whether the task ended while the window was open. Then the task will not restore the paths."""
    uncompared: int = 0
    """The number of further paths whose present state was not compared with the state in which the task found them.

    Any of these paths may belong to the window.
    """

    @property
    def is_open(self) -> bool:
        """Whether the paths still differ from the state in which the task found them."""
        return self.closed_at is None

    def lasted(self, now: datetime) -> timedelta | None:
        """Return how long the window was open, or None if the clock has been set back."""
        span = (self.closed_at or now) - self.opened_at
        return span if span >= timedelta() else None

    @property
    def is_attributed(self) -> bool:
        """Whether it is known which process opened the window."""
        return self.by != SOMEBODY


class Unattributed(Value):
    """A path that changed during the task's run. The cause was not observed."""

    path: str
    name: str
    """The path relative to the project, or the whole path if the path lies outside of the project."""
    how: How
    was_tracked: bool = True


class Effects(Value):
    """The known effects of a task."""

    level: Level = "unknown"
    gaps: tuple[str, ...] = ()
    windows: tuple[Window, ...] = ()
    changed: tuple[str, ...] = ()
    """Paths of the project whose content differs from the content at the start."""
    gone: tuple[str, ...] = ()
    """The changed paths that do not exist any more."""
    created: tuple[str, ...] = ()
    """New paths. A new directory is listed only if no path was created in it, or if it was moved with its content."""
    whole: frozenset[str] = frozenset()
    """Removed or created directories that are reported instead of the paths in them."""
    restored: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    """Paths that were written, but had the same content as before at every check."""
    possible: tuple[Window, ...] = ()
    """Files that a process was writing for a while, and that have the same content as before.

    Their content during the writing is not known.
    """
    git: tuple[tuple[datetime, str, str], ...] = ()
    """Changes of git's own state: the time, the changed part and the command."""
    outside: tuple[str, ...] = ()
    """Paths outside of the project and of temporary directories."""
    remotes: tuple[str, ...] = ()
    unobserved_since: datetime | None = None
    why_unseen: str | None = None
    """Why the task's system calls were not observed."""
    moved: str | None = None
    """A sentence about the changes of git's state that no process was observed to make while the task ran."""
    meanwhile: tuple[str, ...] = ()
    """The changes in `moved` that would count as drift after the end, such as a change of HEAD or the configuration."""
    unattributed: tuple[Unattributed, ...] | None = None
    """The changes that no process was observed to make.

    None if no snapshots were compared. The list may be shortened, but `unattributed_in_all` counts all changes.
    """
    unattributed_in_all: int = 0
    uncompared: tuple[str, ...] = ()
    """Descriptions of the parts in which the comparison of snapshots may have missed changes."""
    further: tuple[str, ...] = ()
    """Further worktrees in which the task worked. They are outside of the project."""
    is_in_repository: bool = True
    """Whether the task works in a repository. Files are compared with their earlier contents only in repositories."""

    unreported: str | None = None
    """The temporary directory in which the task works outside of any repository. Its files are not reported."""

    @property
    def is_outside_of(self) -> str:
        """A phrase that says where the paths in `outside` lie."""
        return "outside of the project" if self.is_in_repository else "outside of any repository"

    @property
    def is_attributed(self) -> bool:
        """Whether the observation shows which changes the task itself made."""
        return self.level in ("observed", "partial")

    @property
    def is_empty(self) -> bool:
        """Whether the task has no known effect outside of temporary directories."""
        files = self.windows or self.changed or self.created or self.rewritten
        return not (files or self.git or self.outside or self.remotes)

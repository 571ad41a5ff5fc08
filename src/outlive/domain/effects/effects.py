"""The data of a task's effects: its changes, and how certain they are.

A window is a time span in which files differed from what a task had found. Net changes are the changes that remain
at the end.
"""

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
    """Whether the task ended without restoring the paths."""
    uncompared: int = 0
    """The number of further paths that may have been changed at this time too.

    The present state of these paths was not compared with the state in which the task found them.
    """

    @property
    def is_open(self) -> bool:
        """Whether the paths still differ from the state in which the task found them."""
        return self.closed_at is None

    def lasted(self, now: datetime) -> timedelta | None:
        """Return how long the paths were changed, or None if the clock has been set back."""
        span = (self.closed_at or now) - self.opened_at
        return span if span >= timedelta() else None

    @property
    def is_attributed(self) -> bool:
        """Whether it is known which process changed the paths."""
        return self.by != SOMEBODY


class Unattributed(Value):
    """A path that changed during the task's run, by a process that is not known."""

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
    """The paths in `changed` that do not exist any more."""
    created: tuple[str, ...] = ()
    """New paths.

    A new directory is listed only if no path was created in it, or if it was moved here with its content.
    """
    whole: frozenset[str] = frozenset()
    """Removed or created directories that stand for all paths in them."""
    restored: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    """Paths that were written, but had the same content as before at every check."""
    possible: tuple[Window, ...] = ()
    """Files that were open for writing for a while, and whose content is as before.

    Their content during the writing is not known.
    """
    git: tuple[tuple[datetime, str, str], ...] = ()
    """Changes of git's own state: the time, the changed part and the command."""
    outside: tuple[str, ...] = ()
    """Changed paths outside of the project and of temporary directories."""
    remotes: tuple[str, ...] = ()
    unobserved_since: datetime | None = None
    why_unseen: str | None = None
    """Why the task's system calls were not observed."""
    moved: str | None = None
    """A sentence about git's state, such as branches or the stash.

    The sentence names the parts that changed while the task ran, although no process was observed to change them.
    """
    meanwhile: tuple[str, ...] = ()
    """The changes in `moved` that may make the task's result outdated.

    For example a change of HEAD or of the configuration.
    """
    unattributed: tuple[Unattributed, ...] | None = None
    """The changes that no process was observed to make.

    None if no snapshots were compared. The list may be shortened, but `unattributed_in_all` is the number of all these
    changes.
    """
    unattributed_in_all: int = 0
    uncompared: tuple[str, ...] = ()
    """Phrases for the parts that the comparison of snapshots may have missed."""
    further: tuple[str, ...] = ()
    """Worktrees outside of the project in which the task worked."""
    is_in_repository: bool = True
    """Whether the task works in a repository. Files are compared with their earlier contents only in repositories."""

    unreported: str | None = None
    """The temporary directory in which the task works outside of any repository. Its files are not reported."""

    @property
    def is_outside_of(self) -> str:
        """A phrase that describes the paths in `outside`: `outside of the project`.

        If the task works in no repository, the phrase is `outside of any repository`.
        """
        return "outside of the project" if self.is_in_repository else "outside of any repository"

    @property
    def is_attributed(self) -> bool:
        """Whether it was observed which changes the task itself made."""
        return self.level in ("observed", "partial")

    @property
    def is_empty(self) -> bool:
        """Whether the task has no known effect outside of temporary directories."""
        files = self.windows or self.changed or self.created or self.rewritten
        return not (files or self.git or self.outside or self.remotes)

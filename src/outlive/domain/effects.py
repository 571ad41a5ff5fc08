"""What a task touched, as values: windows, net changes, and how sure we are.

`replay` derives them from a journal, `effects_words` says them.
"""

from __future__ import annotations

from outlive.domain.value import Value
from outlive.domain.when import timedelta

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Literal

    from outlive.domain.comparison import How

    Level = Literal["observed", "partial", "watched", "compared", "declared", "unknown"]


SOMEBODY = "somebody"


class Window(Value):
    """A span in which something shared was not as the task found it."""

    scope: str
    paths: tuple[str, ...]
    opened_at: datetime
    closed_at: datetime | None
    by: str
    is_left: bool = False
    """Whether its task has ended: it will put nothing back any more."""

    @property
    def is_open(self) -> bool:
        """Whether it still is not as it was."""
        return self.closed_at is None

    def lasted(self, now: datetime) -> timedelta | None:
        """How long it was, or has been, open; None if the clock was set back meanwhile, so that nobody can tell."""
        span = (self.closed_at or now) - self.opened_at
        return span if span >= timedelta() else None

    @property
    def is_attributed(self) -> bool:
        """Whether it is known whose doing it is."""
        return self.by != SOMEBODY


class Unattributed(Value):
    """A path that changed while the task ran, and nobody was seen changing it."""

    path: str
    name: str
    """The path as the project calls it: from its top on, or all of it if it lies elsewhere."""
    how: How
    was_tracked: bool = True


class Effects(Value):
    """What a task touched, as far as it is known."""

    level: Level = "unknown"
    gaps: tuple[str, ...] = ()
    windows: tuple[Window, ...] = ()
    changed: tuple[str, ...] = ()
    """Paths of the project whose content is another one than at the start."""
    gone: tuple[str, ...] = ()
    """Those of them that are no more."""
    created: tuple[str, ...] = ()
    """A directory only if nothing was created in it, or if it came with all that is in it."""
    whole: frozenset[str] = frozenset()
    """Directories among those that are no more, or were created, which stand for all that is in them."""
    restored: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    """Written, and the same as before at every look."""
    possible: tuple[Window, ...] = ()
    """Files that were being written for a while in which nobody could look, and are the same before and after."""
    git: tuple[tuple[datetime, str, str], ...] = ()
    """When, what of git's own state, and by which command."""
    outside: tuple[str, ...] = ()
    """Paths outside of the project and of temporary directories."""
    remotes: tuple[str, ...] = ()
    unobserved_since: datetime | None = None
    why_unseen: str | None = None
    """Why its system calls were not looked at."""
    moved: str | None = None
    """What of the repository moved between its start and its end, as two snapshots tell it; nobody was seen."""
    meanwhile: tuple[str, ...] = ()
    """Those of them that a notice would tell as drift if they had come after its end: HEAD, configuration and such."""
    unattributed: tuple[Unattributed, ...] | None = None
    """None if nobody compared; cut, unlike the count."""
    unattributed_in_all: int = 0
    uncompared: tuple[str, ...] = ()
    """What the comparison may have missed."""
    further: tuple[str, ...] = ()
    """Worktrees beside its project, in which it worked as well."""
    is_in_repository: bool = True
    """Whether it works in any; elsewhere nobody looks at what files hold, and no window is known."""

    @property
    def is_outside_of(self) -> str:
        """What the paths are outside of that are told as outside."""
        return "outside of the project" if self.is_in_repository else "outside of any repository"

    @property
    def is_attributed(self) -> bool:
        """Whether it is known that the task did it, and nobody else."""
        return self.level in ("observed", "partial")

    @property
    def is_empty(self) -> bool:
        """Whether nothing shared was touched, as far as we know."""
        files = self.windows or self.changed or self.created or self.rewritten
        return not (files or self.git or self.outside or self.remotes)

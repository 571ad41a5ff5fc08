"""What a keeper is born with: everything it needs, so that it never has to ask again.

The installation may be upgraded or deleted while the command runs, so nothing here is a path to
be imported or read later.
"""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.attempt import AttemptFiles
    from outlive.bundle.home import Home
    from outlive.domain.task import Launch


class Surroundings(Value):
    """What the command inherits from its launcher beside descriptors and rights."""

    environ: dict[str, str]
    umask: int
    limits: tuple[tuple[int, tuple[int, int]], ...] = ()
    owner: int | None = None
    """A foreground task ends with this process: a pidfd, or None for a background task."""


class Plan(Value):
    """One attempt, as its keeper knows it."""

    home: Home
    launch: Launch
    files: AttemptFiles
    surroundings: Surroundings
    retries_left: int = 0
    queue_until: float | None = None
    """When waiting for its turn has taken too long (monotonic)."""

"""Foreign tasks: what a client runs in the background by itself, as far as we are told of it.

Outlive does not keep them, so it can only say what it sees: `running` while the client says so, or while
somebody still writes to its output; `unknown` while nobody can tell; `lost` if it was out of sight at two
looks, and nobody told how it ended.
"""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Literal

    ForeignState = Literal["running", "unknown", "lost"]
    Sight = Literal["present", "absent", "unknown"]


class Seen(Value):
    """A task of a client's own, as the client names it."""

    id: str
    command: str
    description: str | None = None
    output: str | None = None
    """Where it writes to, if that is known."""


class Foreign(Value):
    """One that the client has not said to have ended."""

    seq: int
    client: str
    seen: Seen
    process: str | None
    """The client's process, as its session named it then."""
    seen_at: datetime
    """When the client spoke of it last."""
    absent_since: str | None = None
    """Since when (a tick) it has been out of sight."""
    state: ForeignState = "running"


def judge(sight: Sight, absent_for: float | None, grace_s: float) -> ForeignState:
    """What can be said of one whose client is gone: a single look proves nothing."""
    if sight == "present":
        return "running"
    return "lost" if sight == "absent" and absent_for is not None and absent_for >= grace_s else "unknown"

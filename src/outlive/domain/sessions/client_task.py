"""Foreign (client) tasks: commands that a client runs in its own background.

A command is `running` while the client reports it, or while a process still writes to its output. It is `lost` if two
checks did not find it and the client did not report its end. Otherwise it is `unknown`.
"""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Literal

    ForeignState = Literal["running", "unknown", "lost"]
    Sight = Literal["present", "absent", "unknown"]


class ClientReport(Value):
    """A command in a client's own background, as the client names it."""

    id: str
    command: str
    description: str | None = None
    output: str | None = None
    """The file to which the command writes. None if it is not known."""
    cwd: str | None = None
    """The session's directory when the client started the command. None if it is not known."""


class ClientTask(Value):
    """A command in a client's own background, as the ledger records it."""

    seq: int
    client: str
    seen: ClientReport
    process: str | None
    """The client's process, as the session recorded it when the client mentioned the command."""
    seen_at: datetime
    """When the client last mentioned the command."""
    started_at: datetime | None = None
    """When the client first mentioned the command. None if this time was not recorded."""
    ended_at: datetime | None = None
    """When the client reported the end, or when a check found the command gone. None if it counts as running."""
    absent_since: str | None = None
    """The tick (time of the monotonic clock) since which no check has found the command.

    None if the last check found it.
    """
    state: ForeignState = "running"
    is_abandoned: bool = False
    """Whether the client's process has ended, or belongs to another session now."""
    written_at: datetime | None = None
    """When the output was last written. This is set only if the end was not observed."""


def judge(sight: Sight, absent_for: float | None, grace_s: float) -> ForeignState:
    """Return the state of a command whose client process is gone.

    The command is `lost` only after `grace_s` seconds, because a single check proves nothing.
    """
    if sight == "present":
        return "running"
    return "lost" if sight == "absent" and absent_for is not None and absent_for >= grace_s else "unknown"


def did_run(one: ClientTask, since: datetime, until: datetime) -> bool:
    """Return whether a command ran within a span, according to its client's reports."""
    return one.started_at is not None and one.started_at < until and (one.ended_at is None or one.ended_at > since)

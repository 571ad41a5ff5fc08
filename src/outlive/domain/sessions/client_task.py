"""Foreign (client) tasks: commands and child sessions that a client runs itself.

A command is `running` while the client reports it, or while a process still writes to its output. It is `lost` if two
checks did not find it and the client did not report its end. Otherwise it is `unknown`.

A child session is the session of a sub-agent in the client's own store. Only the client can look into that store. A
child session is `running` while the client sees it, `unknown` while the client does not, and then `lost`.
"""

from __future__ import annotations

from outlive.domain.ticks import seconds_since
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Literal

    ForeignState = Literal["running", "unknown", "lost"]
    ForeignKind = Literal["command", "session"]
    Sight = Literal["present", "absent", "unknown"]

# A failed look proves nothing, so a child session whose state cannot be read is given up this many times later.
PATIENCE = 5


class ClientReport(Value):
    """A command in a client's own background, as the client names it."""

    id: str
    command: str
    description: str | None = None
    output: str | None = None
    """The file to which the command writes. None if it is not known."""
    cwd: str | None = None
    """The session's directory when the client started the command. None if it is not known."""
    kind: ForeignKind = "command"
    agent: str | None = None
    """The kind of sub-agent that a child session has, as the client names it."""
    parent: str | None = None
    """The session that a child session works for."""
    sight: Sight = "present"
    """Whether the client sees a child session: `absent` if its list lacks it, `unknown` if it cannot be read."""


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
    """The tick (time of the monotonic clock) since which no check has found the command or child session.

    None if the last check found it.
    """
    unread_since: str | None = None
    """The tick since which the state of a child session could not be read. None if the last look could read it."""
    reason: str | None = None
    """Why a child session was given up as lost. None if it was not."""
    state: ForeignState = "running"
    session: str | None = None
    """The session for which the client runs this, if that was read."""
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


class Looks(Value):
    """The looks for a child session until now, and the state that follows."""

    state: ForeignState
    absent_since: str | None = None
    unread_since: str | None = None


def look_again(before: Looks, sight: Sight, now: str, grace_s: float) -> Looks:
    """Return what follows from another look for a child session at the tick `now`.

    - `present` ends every doubt, also about a lost child session.
    - `absent` means lost if an earlier look, at least `grace_s` seconds ago, did not find it either.
    - `unknown` is a failed look, which says nothing about absence. It means lost if looks have failed for `PATIENCE`
      times as long, because nobody can observe the child session then.

    A lost child session stays lost until a look finds it.
    """
    if sight == "present":
        return Looks(state="running")
    if sight == "absent":
        since, earlier, grace = restarted(before.absent_since, now), before.absent_since, grace_s
        after = Looks(state="unknown", absent_since=since)
    else:
        since, earlier, grace = restarted(before.unread_since, now), before.unread_since, grace_s * PATIENCE
        after = Looks(state="unknown", absent_since=before.absent_since, unread_since=since)
    is_over = since == earlier and (seconds_since(since, now) or 0.0) >= grace
    return after.but(state="lost") if is_over or before.state == "lost" else after


def restarted(since: str | None, now: str) -> str:
    """Return the tick from which a span counts.

    Returns `now` if the earlier tick cannot be compared with it. Ticks of two boots cannot be compared, and a tick in
    the future would make the span endless.
    """
    span = seconds_since(since, now)
    return now if since is None or span is None or span < 0 else since


def did_run(one: ClientTask, since: datetime, until: datetime) -> bool:
    """Return whether a command ran within a span, according to its client's reports."""
    return one.started_at is not None and one.started_at < until and (one.ended_at is None or one.ended_at > since)

"""Client tasks: commands and child sessions that a client runs without Outlive.

A command is `running` while the client reports the command, or while a process still writes to its output. The command
is `lost` if two checks did not find it and the client did not report its end. Otherwise the command is `unknown`.

A child session is the session of a sub-agent in the client's own store. Only the client can read that store. A
child session is `running` while the client finds it there. If the client does not find it, the child session is
`unknown` at first, and `lost` after some time.
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

# A child session that the client does not find counts as lost after a grace period. A failed check does not prove that
# the child session has ended. So if every check fails, the child session counts as lost only after this many grace
# periods.
PATIENCE = 5


class ClientReport(Value):
    """A client's own background command or child session, as the client reports it."""

    id: str
    command: str
    description: str | None = None
    output: str | None = None
    """The file to which the command writes. None if this file is not known."""
    cwd: str | None = None
    """The session's directory when the client started the command. None if this directory is not known."""
    kind: ForeignKind = "command"
    agent: str | None = None
    """The kind of sub-agent that a child session has, as the client names it."""
    parent: str | None = None
    """The session that a child session works for."""
    sight: Sight = "present"
    """Whether the client finds a child session.

    `absent`: the client's list does not contain the child session. `unknown`: its state cannot be read.
    """


class ClientTask(Value):
    """A client's own background command or child session, as the ledger records it."""

    seq: int
    client: str
    seen: ClientReport
    process: str | None
    """The process of the client, recorded when the client reported the command."""
    seen_at: datetime
    """When the client last reported the command."""
    started_at: datetime | None = None
    """When the client first reported the command. None if this time was not recorded."""
    ended_at: datetime | None = None
    """When the client reported the end, or when a check did not find the command.

    None if the command counts as running.
    """
    absent_since: str | None = None
    """Since when checks have not found the command or child session.

    The time is of the monotonic clock. None if the last check found the command or child session.
    """
    unread_since: str | None = None
    """Since when the state of a child session could not be read.

    The time is of the monotonic clock. None if the last check could read the state.
    """
    reason: str | None = None
    """Why a child session counts as lost. None if the child session is not lost."""
    state: ForeignState = "running"
    session: str | None = None
    """The session for which the client runs the command or child session.

    None if the caller did not read this session from the ledger.
    """
    is_abandoned: bool = False
    """Whether the client's process has ended, or now belongs to another session."""
    written_at: datetime | None = None
    """When the output was last written. This is set only if the end was not observed."""


def judge(sight: Sight, absent_for: float | None, grace_s: float) -> ForeignState:
    """Return the state of a background command whose client process has ended.

    The command is `lost` only if no check found it for `grace_s` seconds, because a single check proves nothing.
    """
    if sight == "present":
        return "running"
    return "lost" if sight == "absent" and absent_for is not None and absent_for >= grace_s else "unknown"


class Looks(Value):
    """The state of a child session, as it follows from all checks up to now."""

    state: ForeignState
    absent_since: str | None = None
    unread_since: str | None = None


def look_again(before: Looks, sight: Sight, now: str, grace_s: float) -> Looks:
    """Return the state of a child session after another check at the time `now`.

    `sight` is the result of the check:

    - `present`: the child session is running, even if it counted as lost before.
    - `absent`: the child session is lost if an earlier check, at least `grace_s` seconds ago, did not find it either.
    - `unknown`: the check has failed. The child session is lost if checks have failed for `PATIENCE` times `grace_s`
      seconds, because then its end cannot be observed any more.

    A lost child session stays lost until a check finds it.
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
    """Return the time from which a span is measured: `since` or `now`.

    Returns `now` if `since` is None, belongs to another boot of the machine or lies in the future. A span between two
    boots cannot be measured, and a span from a time in the future would be negative.
    """
    span = seconds_since(since, now)
    return now if since is None or span is None or span < 0 else since


def did_run(one: ClientTask, since: datetime, until: datetime) -> bool:
    """Return whether a command ran during a span, according to its client's reports."""
    return one.started_at is not None and one.started_at < until and (one.ended_at is None or one.ended_at > since)

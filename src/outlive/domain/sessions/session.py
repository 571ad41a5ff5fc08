"""Sessions, and the rules that decide which session a new session continues.

A session is one conversation, with the name that its client gives it. Clients make new names when they resume,
compact, clear or fork a conversation. So the name alone does not show which earlier session a new session continues.
This also follows from the transcript, the process and the terminal. The callers of this module check whether a session
is still open.
"""

from __future__ import annotations

from outlive.domain.ticks import seconds_since
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from typing import Literal

    Source = Literal["startup", "resume", "clear", "compact", "fork"]

SOURCES = ("startup", "resume", "clear", "compact", "fork")
# The ways of beginning with which a new session ends the session that it continues. The earlier session does not end
# if it has another process, because this process may still be running.
REPLACES = ("resume", "clear", "compact")
_SHORTEST_MINTED = 20
_ONE_BOUNDARY_S = 2.0


class Session(Value):
    """One session as the ledger records it."""

    seq: int
    id: str
    project: str
    lineage: str
    client: str | None = None
    source: Source | None = None
    """How the session last began.

    None if only launches have named the session, and no hook has reported its beginning.
    """
    created_at: datetime
    boundary: int = 0
    begun_at: datetime | None = None
    begun_tick: str | None = None
    """When the session last began, by the monotonic clock.

    None if the session has acted since it began.
    """
    begun_by: str | None = None
    """The process that is delivering the hand-off of the session's last beginning.

    None if the hand-off has been delivered.
    """
    ended_at: datetime | None = None
    end_reason: str | None = None
    process: str | None = None
    """The client's process: `pid inode start boot namespace`."""
    transcript: str | None = None
    terminal: str | None = None
    parent: int | None = None
    """The session whose task launched this session."""


class SessionStart(Value):
    """A session that begins, with all evidence that its client gave."""

    id: str
    project: str
    source: Source = "startup"
    client: str | None = None
    continues: str | None = None
    process: str | None = None
    transcript: str | None = None
    terminal: str | None = None
    at: datetime | None = None
    """When the session began, as the client reports. This time is only shown, and no decision depends on it."""
    tick: str = ""
    """When the session began, by the monotonic clock."""
    lease: str = ""
    """The process that delivers the hand-off."""
    parent: str | None = None
    """The task in which the session's client runs."""
    shares_process: bool = False
    """Whether other sessions run in the same process.

    Then only names decide which session the new session continues.
    """


class Lineage(Value):
    """Sessions that continue each other.

    `heirs` maps each session to the sessions that continue it, in order.
    """

    sessions: Mapping[int, Session]
    heirs: Mapping[int, Sequence[int]]


def is_same_boundary(begun: SessionStart, known: Session, is_held: Callable[[str], bool]) -> bool:
    """Return whether this beginning of a session is recorded already.

    If so, no further hand-off is needed, because the hand-off is delivered or is being delivered. For example, two
    hooks of one client may both run when a session begins.
    """
    since = seconds_since(known.begun_tick, begun.tick)
    is_alike = (known.source, known.process, known.ended_at) == (begun.source, begun.process, None)
    is_told = known.begun_by is None or is_held(known.begun_by)
    return is_alike and is_told and since is not None and since < _ONE_BOUNDARY_S


def is_minted(session_id: str) -> bool:
    """Return whether a client, and not a person, made the name of a session.

    Only names made by clients are unique.
    """
    return len(session_id) >= _SHORTEST_MINTED


def predecessor(
    begun: SessionStart, known: Session | None, others: Sequence[Session], is_over: Callable[[Session], bool]
) -> tuple[Session, str] | None:
    """Return the session that a new session continues, and the evidence for this.

    Returns None if the new session continues no session.

    `others` are sessions of the project, newest first. The name that the client gives decides first, then the
    transcript, the process and the terminal. Without this evidence, a resumed or compacted session continues the
    session that ended last. A session that has begun before continues only itself, unless another session has used its
    process in between.
    """
    others = [other for other in others if other.id != begun.id and other.project == begun.project]
    named = next((other for other in others if begun.continues is not None and other.id == begun.continues), None)
    if named is not None:
        return named, "named"
    if begun.source == "startup" or begun.shares_process:
        return None
    others = [other for other in others if None in (other.client, begun.client) or other.client == begun.client]
    if known is not None and known.source is not None:
        kin = (other for other in others if begun.process is not None and other.process == begun.process)
        last = next((other for other in kin if other.ended_at is None), None)
        return None if last is None or begun.source == "fork" else (last, "process")
    return _by_evidence(begun, others, is_over)


def _by_evidence(
    begun: SessionStart, others: Sequence[Session], is_over: Callable[[Session], bool]
) -> tuple[Session, str] | None:
    for name in ("transcript", "process", "terminal"):
        given = getattr(begun, name)
        same = (other for other in others if given is not None and getattr(other, name) == given)
        # Several sessions may have used this terminal. Only one that has ended can be the session that the new session
        # continues.
        found = next((other for other in same if name != "terminal" or is_over(other)), None)
        if found is not None:
            return found, name
    if begun.source in ("resume", "compact"):
        last = next((other for other in others if is_over(other)), None)
        return None if last is None else (last, "recency")
    return None


def replaces(begun: SessionStart, before: Session) -> bool:
    """Return whether the session `before` ends because a new session continues it.

    `before` does not end if it has another process, because this process may still be running.
    """
    return begun.source in REPLACES and (before.process is None or before.process == begun.process)

"""Sessions: which of them goes on where another one was, and which of them is told.

A session is one conversation as its client names it. Clients mint new names when they resume,
compact, clear or fork, so who continues whom is decided from evidence. Whether a session lives is
looked up by whoever calls these functions; they only decide what follows from it.
"""

from __future__ import annotations

from outlive.domain.tick import seconds_since
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from typing import Literal

    Source = Literal["startup", "resume", "clear", "compact", "fork"]

SOURCES = ("startup", "resume", "clear", "compact", "fork")
# Whoever begins like this goes on alone: what it continues is over, unless it is seen to live elsewhere.
REPLACES = ("resume", "clear", "compact")
_SHORTEST_MINTED = 20
_ONE_BOUNDARY_S = 2.0


class Session(Value):
    """One session as the ledger keeps it."""

    seq: int
    id: str
    project: str
    lineage: str
    client: str | None = None
    source: Source | None = None
    """How it last began; None if it was only ever heard of by a launch."""
    created_at: datetime
    boundary: int = 0
    begun_at: datetime | None = None
    begun_tick: str | None = None
    """When it last began; None once it has done anything since."""
    begun_by: str | None = None
    """The lease of whoever is telling it of its last beginning; None once that is done."""
    ended_at: datetime | None = None
    end_reason: str | None = None
    process: str | None = None
    """The client's process, as `pid inode start boot namespace`."""
    transcript: str | None = None
    terminal: str | None = None


class Begun(Value):
    """A session that begins, with all the evidence that its client gave."""

    id: str
    project: str
    source: Source = "startup"
    client: str | None = None
    continues: str | None = None
    process: str | None = None
    transcript: str | None = None
    terminal: str | None = None
    at: datetime | None = None
    """When, by the client's word; what is shown, and nothing that is decided, follows it."""
    tick: str = ""
    """When, on the clock that nobody sets."""
    lease: str = ""
    """Held by whoever tells it what it should know."""
    shares_process: bool = False
    """Whether other sessions live in its process, too: then its own name or its client's word says where it goes on."""


class Lineage(Value):
    """Sessions that continue each other, with who came after whom, in that order."""

    sessions: Mapping[int, Session]
    heirs: Mapping[int, Sequence[int]]


def is_same_boundary(begun: Begun, known: Session, is_held: Callable[[str], bool]) -> bool:
    """Whether this was already told, or is being told: two hooks of one client, say, that both run at its start."""
    since = seconds_since(known.begun_tick, begun.tick)
    is_alike = (known.source, known.process, known.ended_at) == (begun.source, begun.process, None)
    is_told = known.begun_by is None or is_held(known.begun_by)
    return is_alike and is_told and since is not None and since < _ONE_BOUNDARY_S


def is_minted(session_id: str) -> bool:
    """Whether a client made up this name, so that it is nobody else's in any project; people's are short."""
    return len(session_id) >= _SHORTEST_MINTED


def predecessor(
    begun: Begun, known: Session | None, others: Sequence[Session], is_over: Callable[[Session], bool]
) -> tuple[Session, str] | None:
    """Which session this one continues, and the evidence for it, from those of its project, newest first.

    The client's own word comes first, then the transcript, the process, the terminal. A client
    that gave nothing and says that it resumes has most likely resumed what ended last. One that has
    begun before goes on where it was itself, unless its process was another one's in between.
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
    begun: Begun, others: Sequence[Session], is_over: Callable[[Session], bool]
) -> tuple[Session, str] | None:
    for name in ("transcript", "process", "terminal"):
        given = getattr(begun, name)
        same = (other for other in others if given is not None and getattr(other, name) == given)
        # A terminal has had many tenants: only one that has left it can have made room.
        found = next((other for other in same if name != "terminal" or is_over(other)), None)
        if found is not None:
            return found, name
    if begun.source in ("resume", "compact"):
        last = next((other for other in others if is_over(other)), None)
        return None if last is None else (last, "recency")
    return None


def replaces(begun: Begun, before: Session) -> bool:
    """Whether the session before is over because this one begins; not if its process may live on elsewhere."""
    return begun.source in REPLACES and (before.process is None or before.process == begun.process)


def told_of(origin: int, lineage: Lineage, lives: Callable[[Session], bool]) -> int | None:
    """Who is told how a session's tasks ended: itself while it lives, else the first of its heirs that does.

    What an heir leads to comes before the next heir. None if nobody of them lives.
    """
    waiting, seen = [origin], set()
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        if lives(lineage.sessions[one]):
            return one
        seen.add(one)
        waiting += reversed(lineage.heirs.get(one, ()))
    return None


def told_through(me: int, lineage: Lineage, lives: Callable[[Session], bool]) -> list[int]:
    """The sessions whose notices this one is told, if it asks: its own, and those of whom it is the heir.

    One that is over is told only what nobody is told who lives.
    """

    def lives_or_asks(session: Session) -> bool:
        return session.seq == me or lives(session)

    return [
        one
        for one in lineage.sessions
        if told_of(one, lineage, lives_or_asks) == me and told_of(one, lineage, lives) in (me, None)
    ]

"""Notices: what a session must be told, when it may be told again, and what is told together."""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

OPEN = ("pending", "claimed", "presented")
_ENDINGS = ("ended", "lost", "retrying")
# Once, and at most twice again at later boundaries, if nothing shows that it was received.
MOST_PRESENTATIONS = 3
# How long a wake may wait for others that belong to it, and for a target that is busy.
COALESCE_S = 0.25
DEFERRAL_CEILING_S = 60.0


class Notice(Value):
    """One thing that a session must be told."""

    seq: int
    id: str
    task: str
    attempt: int
    kind: str
    origin: int
    state: str
    created_at: datetime
    claimer: str | None = None
    tries: int = 0
    presented_to: int | None = None
    last_error: str | None = None


class Telling(Value):
    """What is told as one: a notice, and those that are part of what it says."""

    notice: Notice
    covers: tuple[Notice, ...] = ()

    @property
    def all(self) -> tuple[Notice, ...]:
        """Every notice that is told by this."""
        return (self.notice, *self.covers)


def may_be_claimed(notice: Notice, *, at_boundary: bool, is_held: Callable[[str], bool]) -> bool:
    """Whether it can be told now: nobody else is about to, and it has not been told in vain too often."""
    if notice.state == "pending":
        return True
    if notice.state == "claimed":
        # Who claimed it and died before it was presented leaves it as it was.
        return notice.claimer is None or not is_held(notice.claimer)
    return at_boundary and notice.state == "presented" and notice.tries < MOST_PRESENTATIONS


def told_together(notices: Sequence[Notice], members_of: Callable[[str], frozenset[str]]) -> list[Telling]:
    """The notices as they are told: the ending of a group tells of all its members, and nobody is told twice."""
    covered: dict[str, list[Notice]] = {}
    taken: set[str] = set()
    # An ending tells whom its task was in the way of; that it was so while it ran is no longer news.
    endings = {(each.task, each.attempt): each for each in notices if each.kind in _ENDINGS}
    for notice in notices:
        ending = endings.get((notice.task, notice.attempt))
        if notice.kind == "overlap" and ending is not None:
            covered.setdefault(ending.id, []).append(notice)
            taken.add(notice.id)
    # The latest first: it tells also of those that an earlier ending of its group would have told of.
    for notice in reversed(notices):
        if notice.kind == "group_ended" and notice.id not in taken:
            members = members_of(notice.task)
            parts = [each for each in notices if each.id not in taken and _is_part(each, notice, members)]
            covered[notice.id] = [one for part in parts for one in (part, *covered.pop(part.id, ()))]
            taken.update(each.id for each in parts)
    return [
        Telling(notice=notice, covers=tuple(covered.get(notice.id, ()))) for notice in notices if notice.id not in taken
    ]


def _is_part(notice: Notice, whole: Notice, members: frozenset[str]) -> bool:
    """Also an earlier ending of the group: the later one tells of all there is."""
    return notice.seq <= whole.seq and notice.id != whole.id and notice.task in members


def may_wait(kind: str, state: str, remaining: int) -> bool:
    """Whether it need not wake anybody yet: a success, while others of its group go on."""
    return kind == "ended" and state == "succeeded" and remaining > 0

"""Notices: events that are reported to a session, and the rules of their delivery."""

from __future__ import annotations

from outlive.domain.timestamps import timedelta
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

OPEN = ("pending", "claimed", "presented")
_ENDINGS = ("ended", "lost", "retrying")
# Until a session acknowledges a notice, the notice is presented at most three times: once, and then when the session
# begins again or its history is compacted.
MOST_PRESENTATIONS = 3
# The longest delay, in seconds, before a session is woken. The delay collects related notices, or waits for a busy
# session.
COALESCE_S = 0.25
DEFERRAL_CEILING_S = 60.0
# The client may replace a session's history by a summary. Then the notices of tasks that ended within this time are
# repeated, because the summary may lack them.
TOLD_LATELY = timedelta(hours=1)


class Notice(Value):
    """One event that is reported to a session."""

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
    is_quiet: bool = False
    """Whether the notice waits for the session's next turn.

    A quiet notice neither wakes the session nor prevents it from stopping.
    """


class Telling(Value):
    """A notice, with the other notices that are included in its text."""

    notice: Notice
    covers: tuple[Notice, ...] = ()

    @property
    def all(self) -> tuple[Notice, ...]:
        """This notice, and every notice that is delivered as a part of it."""
        return (self.notice, *self.covers)

    @property
    def is_quiet(self) -> bool:
        """Whether the notice, and all notices included in it, can wait for the next turn.

        Then they need not wake the session.
        """
        return all(notice.is_quiet for notice in self.all)


def may_be_claimed(notice: Notice, *, at_boundary: bool, is_held: Callable[[str], bool]) -> bool:
    """Return whether a notice can be delivered now.

    A notice cannot be delivered while a process that has begun to deliver it still runs. A notice that was presented
    can be presented again only when a session begins or its history was compacted, and at most `MOST_PRESENTATIONS`
    times in all.
    """
    if notice.state == "pending":
        return True
    if notice.state == "claimed":
        # If the process that reserved the notice died before it presented the notice, another process may present it.
        return notice.claimer is None or not is_held(notice.claimer)
    return at_boundary and notice.state == "presented" and notice.tries < MOST_PRESENTATIONS


def told_together(notices: Sequence[Notice], members_of: Callable[[str], frozenset[str]]) -> list[Telling]:
    """Join the notices that are delivered together.

    The notice that an attempt has ended includes the notices about other tasks' changes during this attempt. The
    notice that a group has ended includes the notices of its members.
    """
    covered: dict[str, list[Notice]] = {}
    taken: set[str] = set()
    # The notice that an attempt has ended reports all changes that other tasks made meanwhile. So a separate notice
    # about such changes would repeat them.
    endings = {(each.task, each.attempt): each for each in notices if each.kind in _ENDINGS}
    for notice in notices:
        ending = endings.get((notice.task, notice.attempt))
        if notice.kind == "overlap" and ending is not None:
            covered.setdefault(ending.id, []).append(notice)
            taken.add(notice.id)
    # The latest notice about a group is taken first, because it includes the earlier notices of the group.
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
    """Return whether `whole`, a notice that a group has ended, includes `notice`."""
    return notice.seq <= whole.seq and notice.id != whole.id and notice.task in members


def count_running(spans: Sequence[tuple[int, int | None]]) -> tuple[int, int]:
    """Return how many tasks of a session run, and how many tasks it has in all.

    Only tasks that were launched after the last time at which no task ran are counted. `spans` has the time of launch
    and the time of the end (None if running) of each task, in the order of launch.
    """
    running, launched, latest = 0, 0, 0
    for begin, end in spans:
        if not running and begin > latest:
            launched = 0
        launched += 1
        if end is None:
            running += 1
        else:
            latest = max(latest, end)
    return running, launched


def may_wait(kind: str, state: str, remaining: int) -> bool:
    """Return whether a notice of success can wait instead of waking the session.

    Returns True as long as other tasks of the group still run.
    """
    return kind == "ended" and state == "succeeded" and remaining > 0


def needs_answer(kind: str, state: str | None, *, is_failure_urgent: bool) -> bool:
    """Return whether a notice is delivered at once to a session that collects notices.

    This is so for an agent's question and for a stalled task. With `is_failure_urgent`, it is also so for a failure.
    """
    if kind in ("stalled", "input_required"):
        return True
    return is_failure_urgent and (kind == "lost" or (kind == "ended" and state in ("failed", "timed_out", "lost")))

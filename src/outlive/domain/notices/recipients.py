"""Recipients: the sessions to which a task's end is reported.

A session is open until the session, or its client's process, is known to have ended. In each rule, a session that is
not open is replaced by the first open session that continues it. The first rule that finds an open session decides:

1. the session that launched the task, or the session that last retried the task;
2. the nearest open ancestor of this session: the session whose task launched this session, and so on;
3. every session that was shown the task while the task ran;
4. the session whose hand-off reported the end when the session began.

If none of these sessions is open, the end is reported to the next new session of the project.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from outlive.domain.sessions.session import Lineage, Session

    LineageOf = Callable[[int], Lineage]
    Lives = Callable[[Session], bool]


def living_heir(session: int, lineage: Lineage, lives: Lives) -> int | None:
    """Return a session if it is open, or the first open session that continues it.

    Returns None if no such session is open. The search follows the first continuing session to its end before it tries
    the next one (depth-first).
    """
    waiting, seen = [session], set()
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        if lives(lineage.sessions[one]):
            return one
        seen.add(one)
        waiting += reversed(lineage.heirs.get(one, ()))
    return None


def recipients(origin: int, shown_to: Sequence[int], lineage_of: LineageOf, lives: Lives) -> tuple[int, ...]:
    """Return the sessions to which a task's end is reported.

    The session `origin` launched the task. `shown_to` lists the sessions that were shown the task while it ran, and
    then the session whose hand-off reported the end. An empty tuple means that the next new session of the project is
    the recipient.
    """
    seen: set[int] = set()
    ancestor: int | None = origin
    while ancestor is not None and ancestor not in seen:
        seen.add(ancestor)
        lineage = lineage_of(ancestor)
        living = living_heir(ancestor, lineage, lives)
        if living is not None:
            return (living,)
        ancestor = lineage.sessions[ancestor].parent
    found = (living_heir(one, lineage_of(one), lives) for one in shown_to)
    return tuple(dict.fromkeys(one for one in found if one is not None))


def is_recipient(session: int, origin: int, shown_to: Sequence[int], lineage_of: LineageOf, lives: Lives) -> bool:
    """Return whether a task's end is reported to a session that asks for notices.

    A session that is not open is a recipient only if no open session is a recipient.
    """

    def lives_or_asks(each: Session) -> bool:
        return each.seq == session or lives(each)

    if session not in recipients(origin, shown_to, lineage_of, lives_or_asks):
        return False
    living = recipients(origin, shown_to, lineage_of, lives)
    return not living or session in living

"""Ended tasks of which no living session was told.

The next new session of the project gets the notices of all these tasks at once. When the session's next turn shows
that it got the hand-off, the notices are acknowledged for every session. If the session ends before that, the next new
session gets these notices.
"""

from __future__ import annotations

from outlive.bundle.lease import is_held
from outlive.domain.value import Value
from outlive.ledger.sqlite import SqliteLedger
from outlive.ledger.unheard_endings import UnheardEnding, UnheardEndings
from outlive.service.clock import utc_now
from outlive.service.notices.find_recipients import Recipients

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.domain.sessions.session import Session
    from outlive.domain.tasks.task import Task
    from outlive.service.notices.find_recipients import OwedBy

_MOST_NAMED = 5


class UnheardOfProject(Value):
    """The ended tasks of earlier sessions that a hand-off reports."""

    tasks: tuple[Task, ...] = ()
    """The tasks that the hand-off names."""
    more: int = 0
    """The number of further ended tasks, which the hand-off does not name."""
    more_failed: int = 0
    """How many of the further ended tasks did not succeed."""


def claim_earlier(home: Home, owed: OwedBy, lease: str, *, is_new: bool) -> UnheardOfProject:
    """Reserve, for a session that begins now, notices that no living session gets.

    They report the end of tasks of earlier sessions. If `is_new` is not set, the function reserves only notices that
    were presented to this session before and were not confirmed.
    """
    with SqliteLedger(home.ledger, utc_now()) as ledger, ledger.write():
        unheard = _unheard(home, ledger, owed.session, is_new=is_new)
        if unheard is None:
            return UnheardOfProject()
        found = _read(ledger, unheard)
        UnheardEndings(ledger).claim(unheard, lease)
        return found


def peek_at_earlier(home: Home, owed: OwedBy) -> UnheardOfProject:
    """Return the ended tasks of earlier sessions that a session would be told about.

    This is what the session would get if it began now. Nothing is changed in the ledger.
    """
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        unheard = _unheard(home, ledger, owed.session, is_new=True)
        return UnheardOfProject() if unheard is None else _read(ledger, unheard)


def _read(ledger: SqliteLedger, unheard: UnheardEnding) -> UnheardOfProject:
    endings = UnheardEndings(ledger)
    ended, failed = endings.count(unheard)
    tasks = [task for one in endings.first(unheard, _MOST_NAMED) if (task := ledger.task(one)) is not None]
    named_failed = sum(task.state != "succeeded" for task in tasks)
    return UnheardOfProject(tasks=tuple(tasks), more=ended - len(tasks), more_failed=failed - named_failed)


def _unheard(home: Home, ledger: SqliteLedger, me: Session, *, is_new: bool) -> UnheardEnding | None:
    """Return the notices about ended tasks that no living session gets.

    Returns None if there are none.
    """
    endings, rule = UnheardEndings(ledger), Recipients(ledger)
    kin = rule.lineage_of(me.seq).sessions
    origins = [one for one in endings.origins(me.project) if one not in kin and not rule.of_session(one)]
    if not origins:
        return None
    heirs = {one: rule.heir_of(one) for one in endings.told_to(me.project, origins)}
    kept = [task for task in endings.shown(origins) if not set(rule.heirs_of_shown(task)) <= {me.seq}]
    return UnheardEnding(
        project=me.project,
        origins=tuple(origins),
        kept=tuple(kept),
        claimers=tuple(name for name in endings.claimers(me.project, origins) if is_held(home, name)),
        others=tuple(one for one, heir in heirs.items() if heir not in (None, me.seq)),
        only=None if is_new else tuple(one for one, heir in heirs.items() if heir == me.seq),
    )

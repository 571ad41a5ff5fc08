"""A fast check whether there are notices for a session."""

from __future__ import annotations

from outlive.bundle.attempt import AttemptFiles, keeper_lives
from outlive.hooks.state import unchanged
from outlive.ledger.client_tasks import ClientTasks
from outlive.ledger.notices import Notices
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.notices.inbox import awaited_by, owed_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from outlive.bundle.home import Home
    from outlive.domain.sessions.client_task import ClientTask
    from outlive.hooks.event import Event
    from outlive.service.notices.find_recipients import OwedBy

    Seen = Literal["nothing", "running", "owed", "unbegun"]


def find_pending(home: Home, event: Event, project: str, stamp: str) -> Seen:
    """Return what a session needs next, after a check of the keepers of running tasks.

    - `owed`: there are notices to present or to confirm now.
    - `running`: there are no such notices now, but tasks run, or presented notices wait for their confirmation.
    - `unbegun`: the session's beginning was not recorded, because the ledger was locked or Outlive was not yet
      installed.
    - `nothing`: the session needs no step. If only a write to the ledger can change this, later hooks need not open the
      ledger until the next write.
    """
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        owed = owed_to(ledger, event.session, project)
        found = set() if owed is None else _open_states(Notices(ledger), owed)
        running = [] if owed is None else awaited_by(ledger, owed)
        abandoned = [] if owed is None else abandoned_for(ledger, owed)
        is_forsaken = any(not _is_kept(home, task.id, task.current.number) for task in running)
    if event.kind == "prompt" and (owed is None or owed.session.source is None):
        return "unbegun"
    if event.kind != "stop" and any(one.state == "lost" for one in abandoned):
        return "owed"
    if not found and not running:
        # Two things can happen without a change of the ledger's files: another session ends, and this one gets its
        # notices, or a background command of a client is lost, and this session must be notified. If either may happen,
        # do not remember the stamp of the files, so that the next hook checks again.
        if owed is None or not (owed.may_grow or abandoned):
            unchanged.remember(home, event.session, stamp)
        return "nothing"
    if is_forsaken:
        from outlive.keeper.spawn import launch_adopter  # noqa: PLC0415 - imported here, because it is needed only after a keeper was killed
        from outlive.service.maintenance.reconcile import reconcile  # noqa: PLC0415

        reconcile(home, utc_now(), None, launch_adopter)
        return "owed"
    if found - {"presented"} or (found and event.is_turn):
        return "owed"
    return "running"


def _open_states(notices: Notices, owed: OwedBy) -> set[str]:
    """Return the states of a session's notices that are not closed yet.

    Notices of earlier sessions count, too, if the hand-off has presented them to this session.
    """
    found = notices.open_states(owed.origins, owed.tasks)
    return found | {notice.state for notice in notices.presented_to(owed.session.seq, 1)}


def abandoned_for(ledger: SqliteLedger, owed: OwedBy) -> list[ClientTask]:
    """Return the clients' background commands whose end no client will report.

    They are lost, or their client has exited. `owed` names the session that must be notified.
    """
    if not ClientTasks(ledger).origins():
        return []
    from outlive.service.sessions.note_client_tasks import abandoned_of  # noqa: PLC0415 - imported here, because it is rarely needed: few clients run background commands themselves

    return abandoned_of(ledger, owed)


def _is_kept(home: Home, task: str, attempt: int) -> bool:
    try:
        return keeper_lives(AttemptFiles(home.bundle(task), attempt))
    except OSError:
        return False

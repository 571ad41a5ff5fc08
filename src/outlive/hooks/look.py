"""A look at what there is for a session, as cheap as it can be: nearly always there is nothing."""

from __future__ import annotations

from outlive.bundle.attempt import AttemptFiles, keeper_lives
from outlive.hooks import quiet
from outlive.ledger.inbox import Inbox
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.inbox import owed_to, running_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from outlive.bundle.home import Home
    from outlive.hooks.event import Event

    Seen = Literal["nothing", "running", "owed", "unbegun"]


def look(home: Home, event: Event, project: str, stamp: str) -> Seen:
    """`owed` if something may be told or confirmed now, `running` if only that; what died unseen is settled first.

    `unbegun` if its beginning was never told: the ledger was locked then, or we were not installed yet.
    """
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        owed = owed_to(ledger, event.session, project)
        found = [] if owed is None else Inbox(ledger).owed(owed.origins)
        running = [] if owed is None else running_for(ledger, owed)
        is_forsaken = any(not _is_kept(home, task.id, task.current.number) for task in running)
    if event.kind == "prompt" and (owed is None or owed.session.source is None):
        return "unbegun"
    if not found and not running:
        quiet.remember(home, event.session, stamp)
        return "nothing"
    if is_forsaken:
        from outlive.keeper.launching import launch_adopter  # noqa: PLC0415 - seldom needed
        from outlive.service.reconcile import reconcile  # noqa: PLC0415

        reconcile(home, utc_now(), None, launch_adopter)
        return "owed"
    if any(notice.state != "presented" or event.is_turn for notice in found):
        return "owed"
    return "running"


def _is_kept(home: Home, task: str, attempt: int) -> bool:
    try:
        return keeper_lives(AttemptFiles(home.bundle(task), attempt))
    except OSError:
        return False

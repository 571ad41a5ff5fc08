"""Ending an attempt whose command has not begun, and now never will."""

from __future__ import annotations

import os

from outlive.domain.errors import OutliveError
from outlive.domain.evidence import Evidence, Intent
from outlive.domain.settlement import plan_settlement
from outlive.domain.when import UTC, datetime
from outlive.keeper.sight import never_begun
from outlive.keeper.supervision import write_intent
from outlive.ledger.sqlite import SqliteLedger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.attempt import Held
    from outlive.domain.evidence import IntentKind
    from outlive.keeper.plan import Plan


def read_call(control: int) -> IntentKind | None:
    """What somebody who poked the keeper wants of it."""
    words = os.read(control, 4096).split()
    return "cancel" if b"cancel" in words else "session_ended" if b"session_ended" in words else None


def refuse(plan: Plan, held: Held, kind: IntentKind, why: str | None = None) -> None:
    """Somebody, or something, has decided that it must not begin."""
    now = datetime.now(UTC)
    write_intent(held.record, kind, now)
    seen = Evidence(kind="not_started", seen_by="keeper", started="no", cause=kind, detail=why, at=now)
    _settle(plan, held, seen, Intent(kind=kind, at=now))


def abandon(plan: Plan, held: Held) -> None:
    """Its launcher was killed, or could not record it; if there is a row all the same, it is settled."""
    _settle(plan, held, never_begun("launcher_killed"), None)


def _settle(plan: Plan, held: Held, seen: Evidence, intent: Intent | None) -> None:
    now = datetime.now(UTC)
    settlement = plan_settlement(plan.launch, plan.files.number, seen, intent, now=now, settled_by="keeper")
    try:
        with SqliteLedger(plan.home.ledger, now, create=False) as ledger:
            ledger.settle(settlement)
    except OutliveError:
        pass  # without a keeper it will be settled by a reader, as never begun
    held.let_go()

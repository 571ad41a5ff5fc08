"""Settlement of an attempt whose command has not begun and never will."""

from __future__ import annotations

import os
import time

from outlive.bundle.attempt import discard_bundle
from outlive.domain.errors import LedgerIncomplete, OutliveError
from outlive.domain.tasks.evidence import LAUNCHER_KILLED, Intent, refused
from outlive.domain.tasks.settlement import plan_settlement
from outlive.domain.timestamps import UTC, datetime
from outlive.keeper.exit_watch import never_begun
from outlive.keeper.intent import write_intent
from outlive.ledger.completeness import Restoring
from outlive.ledger.sqlite import SqliteLedger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.attempt import HeldFiles
    from outlive.domain.tasks.evidence import Evidence, IntentKind
    from outlive.domain.tasks.settlement import Settlement
    from outlive.keeper.plan import Plan

_LONGEST_WAIT_S = 5.0


def read_call(control: int) -> IntentKind | None:
    """Read from the attempt's control FIFO whether a process requests its end.

    Returns the kind of the request, `cancel` or `session_ended`, or None if there is no request.
    """
    words = os.read(control, 4096).split()
    return "cancel" if b"cancel" in words else "session_ended" if b"session_ended" in words else None


def refuse(plan: Plan, held: HeldFiles, kind: IntentKind, why: str | None = None) -> None:
    """Settle an attempt that must not begin, for instance because it was cancelled."""
    now = datetime.now(UTC)
    write_intent(held.record, kind, now)
    intent = Intent(kind=kind, at=now)
    _settle(plan, refused(intent, "keeper", why), intent)
    held.let_go()


def abandon(plan: Plan, held: HeldFiles) -> None:
    """Settle an attempt whose launcher was killed or could not record the attempt.

    If the task is new and has no row in the ledger, its bundle is deleted. Otherwise the next `outlive` command would
    restore the task as one that the ledger has lost, although the task never began.
    """
    is_recorded = _settle(plan, never_begun(cause=LAUNCHER_KILLED), None)
    if not is_recorded and plan.files.number == 1:
        discard_bundle(plan.files.bundle)
    held.let_go()


def _settle(plan: Plan, seen: Evidence, intent: Intent | None) -> bool:
    """Settle the attempt. Return False if its task has no row in the ledger.

    Returns True if it is unknown whether there is a row.
    """
    now = datetime.now(UTC)
    settlement = plan_settlement(plan.launch, plan.files.number, seen, intent, now=now, settled_by="keeper")
    if plan.launch.agent is not None:
        settlement = _without_worktree(plan, settlement)
    try:
        try:
            return _write(plan, settlement)
        except LedgerIncomplete:
            # The launcher counts an attempt before it commits the attempt's row. It was killed between these two steps.
            with Restoring(plan.home.ledger, time.monotonic() + _LONGEST_WAIT_S):
                return _write(plan, settlement)
    except (OutliveError, OSError):
        return True  # a reader of the ledger will settle the attempt as an attempt that never began


def _without_worktree(plan: Plan, settlement: Settlement) -> Settlement:
    try:
        from outlive.keeper.agents.end_worktree import end_worktree  # noqa: PLC0415 - only agent tasks need this import
    except ImportError:
        return settlement  # the installation was deleted, so the worktree cannot be removed
    return end_worktree(plan, settlement)


def _write(plan: Plan, settlement: Settlement) -> bool:
    with SqliteLedger(plan.home.ledger, settlement.settled_at, create=False) as ledger:
        return ledger.settle(settlement) or ledger.task(plan.launch.id) is not None

"""The keeper's writes to the ledger at the end of an attempt, with retries."""

from __future__ import annotations

import time

from outlive.domain.errors import DiskFull, LedgerIncomplete, NewerLedger, OutliveError, Unavailable
from outlive.domain.timestamps import UTC, datetime
from outlive.keeper.observation.record_left_open import changed_nothing
from outlive.keeper.sink_process import start_deliverer
from outlive.ledger.kept_open import KeptOpenLedger
from outlive.ledger.left_open_paths import LeftOpenPaths
from outlive.ledger.sqlite import SqliteLedger
from outlive.linux.syscalls import give_back_memory, keep_freed_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from outlive.bundle.attempt import HeldFiles
    from outlive.bundle.home import Home
    from outlive.domain.tasks.lifecycle import Condition
    from outlive.domain.tasks.settlement import Settlement
    from outlive.domain.tasks.task import Attempt
    from outlive.keeper.plan import Plan

_TRIES = 8
_TIDIES_ONE_IN = 16  # the digits of the task's id decide whether its keeper deletes old tasks


def deliver_if_owed(home: Home, ledger: SqliteLedger) -> None:
    """Start a process that delivers the notices which a sink has not got yet.

    A sink is a receiver of notices that the user configured. Nothing is started if a deliverer is already running.
    """
    try:
        if ledger.owes_sinks():
            start_deliverer(home)
    except (OSError, OutliveError):
        pass  # the sinks get the notices later, and `outlive inbox` shows them


class SettlementWriter:
    """The keeper's connection to the ledger.

    It has no lock on the ledger before the settlement.
    """

    def __init__(self, plan: Plan, held: HeldFiles, on_settled: Callable[[], None]) -> None:
        self._on_settled = on_settled
        self._plan = plan
        self._held = held
        self._ledger = KeptOpenLedger(plan.home.ledger, create=False)

    def rehearse(self) -> None:
        """Open the ledger and compile the statements that the settlement will execute."""
        self._open_to_rest(SqliteLedger.get_ready_to_settle)
        give_back_memory()

    def say(self, condition: Condition | None) -> None:
        """Set the condition of the running attempt, and send notices of it to the sinks.

        A condition is a state such as stalled. A sink is a receiver of notices that the user configured.
        """
        try:
            with self._ledger.use(datetime.now(UTC)) as ledger:
                ledger.set_condition(self._plan.launch.id, self._plan.files.number, condition)
                deliver_if_owed(self._plan.home, ledger)
        except OutliveError:
            pass  # the condition, such as stalled, is only for information, so the task goes on without it

    def prepare(self) -> None:
        """Open the ledger while the witness writes down how the command ended."""
        keep_freed_memory()
        self._open_to_rest()

    def write(self, settlement: Settlement, again: Attempt | None) -> bool:
        """Settle the attempt, then wake every process that waits for its end.

        `again` is the row of the next attempt, if there is one. Returns False if another process has settled the
        attempt, or if the ledger cannot be written. In the second case, a reader of the ledger later settles the
        attempt from the exit record.
        """
        keep_freed_memory()
        for attempt in range(_TRIES):
            try:
                with self._ledger.take(datetime.now(UTC)) as ledger:
                    is_ours = self._settle(ledger, settlement, again)
                    # Processes that wait for the end of the attempt sleep until these files are closed. So close them
                    # now: closing the ledger or exiting first would delay these processes.
                    self._held.let_go()
                    self._on_settled()
                    deliver_if_owed(self._plan.home, ledger)
                    self._tidy(ledger)
                    return is_ours
            except DiskFull:
                self._plan.home.drop_ballast()
            except NewerLedger:
                break  # an upgrade has changed the ledger, so a retry would only take time
            except LedgerIncomplete:
                # The ledger is gone, and only a reader creates a new one. That reader may be waiting for the end of
                # this attempt, so do not retry. But retry if there is a next attempt, because a reader would not
                # start it.
                if again is None:
                    break
            except Unavailable:
                pass
            except OutliveError:
                break
            time.sleep(0.05 * 2**attempt)
        self._held.let_go()
        return False

    def _settle(self, ledger: SqliteLedger, settlement: Settlement, again: Attempt | None) -> bool:
        """Settle the attempt. Return False if another process has settled it.

        `again` is the row of the next attempt, if there is one.
        """
        is_failure = settlement.verdict.state != "succeeded" and again is None and not settlement.left_running
        if not is_failure or not changed_nothing(self._plan):
            return ledger.settle(settlement, again)
        with ledger.write():
            is_ours = ledger.settle(settlement)
            if is_ours:
                LeftOpenPaths(ledger).record(settlement.task, settlement.attempt, ())
        return is_ours

    def _tidy(self, ledger: SqliteLedger) -> None:
        """Delete a few tasks that are due for deletion.

        The ledger is still open at this time, and no process waits for the keeper.
        """
        if sum(self._plan.launch.id.encode()) % _TIDIES_ONE_IN == 0:
            try:
                from outlive.keeper.cleanup import tidy_a_little  # noqa: PLC0415 - only one keeper in sixteen needs this import

                tidy_a_little(self._plan.home, ledger, datetime.now(UTC))
            except (ImportError, OutliveError):
                pass  # the attempt is settled, and another keeper will delete the tasks

    def _open_to_rest(self, first: Callable[[SqliteLedger], None] = lambda _: None) -> None:
        try:
            with self._ledger.use(datetime.now(UTC)) as ledger:
                first(ledger)
        except OutliveError:
            return  # `write` opens the ledger again, and retries if this fails

"""The ledger as a keeper uses it at the end: quickly, patiently, and until then at rest."""

from __future__ import annotations

import time

from outlive.bundle.kernel import give_back_memory, keep_freed_memory
from outlive.domain.errors import DiskFull, OutliveError, Unavailable
from outlive.domain.when import UTC, datetime
from outlive.ledger.resting import RestingLedger
from outlive.ledger.sqlite import SqliteLedger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from outlive.bundle.attempt import Held
    from outlive.bundle.home import Home
    from outlive.domain.lifecycle import Condition
    from outlive.domain.settlement import Settlement
    from outlive.domain.task import Attempt
    from outlive.keeper.plan import Plan

_TRIES = 8
_TIDIES_ONE_IN = 16  # by the task's name, since nobody counts


def let_sinks_be_told(home: Home, ledger: SqliteLedger) -> None:
    """Let somebody tell the sinks, if there are any and nobody does it already."""
    try:
        if ledger.owes_sinks():
            from outlive.keeper.delivering import start_deliverer  # noqa: PLC0415 - few have sinks

            start_deliverer(home)
    except (ImportError, OSError, OutliveError):
        pass  # what is to be told stands, and the inbox has it


class LedgerOfAnEnding:
    """Opened when the command has run for a moment, or is gone; nothing in it is locked until there is an ending."""

    def __init__(self, plan: Plan, held: Held, on_settled: Callable[[], None]) -> None:
        self._on_settled = on_settled
        self._plan = plan
        self._held = held
        self._ledger = RestingLedger(plan.home.ledger, create=False)

    def rehearse(self) -> None:
        """Open the ledger while nobody waits for us, and get ready to write.

        In a fresh fork the first use of any code costs a page fault. Those that come now do not
        come when the command has ended and everybody is in a hurry.
        """
        self._open_to_rest(SqliteLedger.get_ready_to_settle)
        give_back_memory()

    def say(self, condition: Condition | None) -> None:
        """Say something of the attempt while it runs; whoever asked for it is told."""
        try:
            with self._ledger.use(datetime.now(UTC)) as ledger:
                ledger.set_condition(self._plan.launch.id, self._plan.files.number, condition)
                let_sinks_be_told(self._plan.home, ledger)
        except OutliveError:
            pass  # nothing depends on it

    def prepare(self) -> None:
        """The command is gone: while its witness writes down how, we get the ledger."""
        keep_freed_memory()
        self._open_to_rest()

    def write(self, settlement: Settlement, again: Attempt | None) -> bool:
        """Make the ending true, and let everybody go who waits for it; False if it is not our word.

        If the ledger refuses for long, the exit record waits for a reader.
        """
        keep_freed_memory()
        for attempt in range(_TRIES):
            try:
                with self._ledger.take(datetime.now(UTC)) as ledger:
                    is_ours = ledger.settle(settlement, again)
                    # Now, and not when ledger and process have been taken apart: waiters are asleep on it.
                    self._held.let_go()
                    self._on_settled()
                    let_sinks_be_told(self._plan.home, ledger)
                    self._tidy(ledger)
                    return is_ours
            except DiskFull:
                self._plan.home.drop_ballast()
            except Unavailable:
                pass
            except OutliveError:
                break
            time.sleep(0.05 * 2**attempt)
        self._held.let_go()
        return False

    def _tidy(self, ledger: SqliteLedger) -> None:
        """Use the open ledger to delete a little of what is due; nobody waits for us any more."""
        if sum(self._plan.launch.id.encode()) % _TIDIES_ONE_IN == 0:
            try:
                from outlive.keeper.tidying import tidy_a_little  # noqa: PLC0415 - one ending in many needs it

                tidy_a_little(self._plan.home, ledger, datetime.now(UTC))
            except (ImportError, OutliveError):
                pass  # the ending stands; another keeper will do it

    def _open_to_rest(self, first: Callable[[SqliteLedger], None] = lambda _: None) -> None:
        try:
            with self._ledger.use(datetime.now(UTC)) as ledger:
                first(ledger)
        except OutliveError:
            return  # it will be tried again, and for longer, when there is something to write

"""Each ended attempt has one notice and one deletion date, in whatever order processes write to the ledger."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from outlive.domain.tasks.lifecycle import CONDITIONS, LIVE, may_move
from outlive.domain.tasks.settlement import plan_settlement
from tests.unit.values import (
    NOW,
    SECOND,
    attempt,
    evidence_while,
    exited,
    intents,
    launch,
    remnants,
)

if TYPE_CHECKING:
    from datetime import datetime

    from outlive.domain.tasks.evidence import Evidence, Intent
    from outlive.domain.tasks.lifecycle import Condition
    from outlive.domain.tasks.task import Launch, LeftRunning
    from outlive.ledger.contract import Ledger
    from tests.conformance.conftest import LedgerFactory, StoreFactory


class Expected:
    """The values that the ledger must have for one task."""

    def __init__(self, asked: Launch) -> None:
        self.launch = asked
        self.states = ["queued"]
        self.endings: dict[int, str] = {}
        self.evidence = 0
        self.condition: str | None = None


class AnyOrder(RuleBasedStateMachine):
    """Calls by all kinds of processes that use the ledger, in any order."""

    tasks: Bundle[str] = Bundle("tasks")

    def __init__(self, open_ledger: LedgerFactory) -> None:
        super().__init__()
        self._open = open_ledger
        self._ledger: Ledger = open_ledger()
        self._expected: dict[str, Expected] = {}
        self._seconds = 0

    def _now(self) -> datetime:
        self._seconds += 1
        return NOW + self._seconds * SECOND

    def teardown(self) -> None:
        """Close the ledger that the last step left open."""
        self._ledger.close()

    @rule(target=tasks, key=st.none() | st.sampled_from(["k", "l"]))
    def enqueue(self, key: str | None) -> str:
        """Launch a task, perhaps with a key that another task has."""
        holder = next((id_ for id_, task in self._expected.items() if key and task.launch.key == key), None)
        asked = launch(id=f"task{len(self._expected):04}", key=key, created_at=self._now())
        got = self._ledger.enqueue(asked, attempt(created_at=asked.created_at)).id
        assert got == (holder or asked.id)
        if holder is None:
            self._expected[asked.id] = Expected(asked)
        return got

    @rule(id_=tasks)
    def start(self, id_: str) -> None:
        """Start the newest attempt, perhaps after it has started or ended."""
        task = self._expected[id_]
        assert self._ledger.start(id_, len(task.states), self._now()) == (task.states[-1] == "queued")
        if task.states[-1] == "queued":
            task.states[-1] = "running"

    @rule(
        id_=tasks,
        evidence=st.sampled_from(LIVE).flatmap(lambda state: evidence_while[state]),
        intent=st.none() | intents,
        left=remnants,
        newest=st.booleans(),
    )
    def settle(
        self,
        id_: str,
        evidence: Evidence,
        intent: Intent | None,
        left: tuple[LeftRunning, ...],
        newest: bool,
    ) -> None:
        """Settle an attempt, perhaps an old one or one that has ended."""
        task = self._expected[id_]
        number = len(task.states) if newest else 1
        if task.states[number - 1] == "queued" and evidence.kind in ("exited", "signalled"):
            return  # A command that was never started cannot have exited.
        planned = plan_settlement(
            task.launch,
            number,
            evidence,
            intent,
            now=self._now(),
            settled_by="keeper",
            left_running=left,
        )
        lives = number == len(task.states) and task.states[-1] in LIVE
        assert self._ledger.settle(planned) == lives
        task.evidence += 1
        if lives:
            task.states[-1] = planned.verdict.state
            task.endings[number] = planned.notice_id
            task.condition = None

    @rule(id_=tasks)
    def hear_late(self, id_: str) -> None:
        """Add the exit of the first attempt as evidence, whatever the attempt's state is."""
        task = self._expected[id_]
        self._ledger.add_evidence(id_, 1, exited(7), self._now())
        task.evidence += 1

    @rule(id_=tasks, skipped=st.integers(-1, 1))
    def retry(self, id_: str, skipped: int) -> None:
        """Add an attempt, which is allowed only if its number is the next number."""
        task = self._expected[id_]
        number = len(task.states) + 1 + skipped
        allowed = skipped == 0 and task.states[-1] not in LIVE
        assert self._ledger.add_attempt(id_, attempt(number, created_at=self._now())) == allowed
        if allowed:
            task.states.append("queued")

    @rule(id_=tasks, condition=st.none() | st.sampled_from(CONDITIONS))
    def say(self, id_: str, condition: Condition | None) -> None:
        """Set or clear a condition of an attempt that runs or has ended."""
        task = self._expected[id_]
        if task.states[-1] != "queued":
            self._ledger.set_condition(id_, len(task.states), condition)
        if task.states[-1] == "running":
            task.condition = condition

    @precondition(lambda self: self._expected)
    @rule()
    def reopen(self) -> None:
        """Close the ledger and open it again."""
        self._ledger.close()
        self._ledger = self._open()

    @invariant()
    def the_ledger_says_what_happened(self) -> None:
        """Check that attempts, states, conditions and evidence are those of the model."""
        live = {id_ for id_, task in self._expected.items() if task.states[-1] in LIVE}
        assert {task.id for task in self._ledger.unsettled()} == live
        for id_, expected in self._expected.items():
            task = self._ledger.task(id_)
            assert task is not None
            assert [each.state for each in task.attempts] == expected.states
            assert task.current.condition == expected.condition
            assert len(self._ledger.history(id_).evidence) == expected.evidence

    @invariant()
    def an_ending_is_whole_or_absent(self) -> None:
        """Check that an ended attempt has one ending notice and one deletion date.

        A live attempt has neither.
        """
        for id_, expected in self._expected.items():
            task = self._ledger.task(id_)
            assert task is not None
            notices = self._ledger.history(id_).notices
            for each in task.attempts:
                told = [n.id for n in notices if n.attempt == each.number]
                if each.state in LIVE:
                    assert told == []
                    assert (each.settled_at, each.delete_after, each.settled_by) == (None,) * 3
                else:
                    assert told == [expected.endings[each.number]]
                    assert each.settled_at is not None
                    assert each.delete_after == each.settled_at + expected.launch.retain
                    assert each.settled_by == "keeper"

    @invariant()
    def every_move_is_one_of_the_table(self) -> None:
        """Check that each attempt's moves begin with queued and end in its state.

        All moves must be in the table of moves.
        """
        for id_, expected in self._expected.items():
            moves = self._ledger.history(id_).moves
            for number, state in enumerate(expected.states, 1):
                path = [(before, after) for n, before, after, _ in moves if n == number]
                assert path[0] == (None, "queued")
                assert path[-1][1] == state
                for (_, reached), (before, after) in pairwise(path):
                    assert before == reached
                    assert may_move(str(before), after)


def test_any_order_of_writes_keeps_every_ending_whole(store_factory: StoreFactory) -> None:
    """In whatever order processes write, each ended attempt has exactly one notice and one deletion date."""

    class WithAStore(AnyOrder):
        def __init__(self) -> None:
            super().__init__(store_factory())

    run_state_machine_as_test(
        WithAStore,
        settings=settings(max_examples=25, stateful_step_count=20, deadline=None),
    )

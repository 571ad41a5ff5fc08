"""The contract of the ledger's methods that write. Each sentence of the contract has a test."""

from __future__ import annotations

import multiprocessing
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from outlive.domain.errors import OutliveError
from outlive.domain.tasks.evidence import Evidence, Intent
from outlive.domain.tasks.lifecycle import CONDITIONS
from outlive.domain.tasks.settlement import OutputSize, plan_settlement
from outlive.domain.tasks.task import LeftRunning, Task
from outlive.ledger.contract import Selection
from tests.conformance.steps import current, ended, enqueued, read_result, running, settlement
from tests.unit.values import NOW, SECOND, attempt, exited, launch, vanished

if TYPE_CHECKING:
    from collections.abc import Callable

    from outlive.domain.tasks.lifecycle import Condition
    from outlive.domain.tasks.task import Launch
    from outlive.ledger.contract import Ledger
    from tests.conformance.conftest import LedgerFactory

ID = "t7k2m9q4"
RACERS = 8


def race(entrant: Callable[[int, Callable[[], object]], str]) -> list[str]:
    """Run `entrant` in eight processes at the same time, and return its eight results.

    `entrant` receives the number of its process, and a function that blocks until all eight processes have called it.
    """
    context = multiprocessing.get_context("fork")
    start = context.Barrier(RACERS)
    answers: multiprocessing.SimpleQueue[str] = context.SimpleQueue()

    def compete(number: int) -> None:
        answers.put(entrant(number, lambda: start.wait(60)))

    racers = [context.Process(target=compete, args=(number,)) for number in range(RACERS)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(60)
    assert [racer.exitcode for racer in racers] == [0] * RACERS
    return [answers.get() for _ in racers]


# --- enqueue --------------------------------------------------------------------------------------


def test_enqueue_records_a_queued_task_with_its_first_attempt(ledger: Ledger) -> None:
    """`enqueue` records a task with every given field, without notices and evidence, and with a queued attempt."""
    asked = launch(
        description="run the tests",
        session="s-1",
        parent="tbcdfghj",
        group="g",
        key="k",
        mode="foreground",
        engine="local",
        timeout=timedelta(seconds=90, microseconds=1),
        notify="failure",
    )
    returned = ledger.enqueue(asked, attempt())
    found = current(ledger)
    assert returned == found.but(lineage=None) == Task(launch=asked, attempts=(attempt(),))
    assert found.lineage is not None
    assert ledger.history(ID).notices == ()
    assert ledger.history(ID).evidence == ()


def test_ledger_keeps_every_write_for_other_connections(ledger_factory: LedgerFactory) -> None:
    """Another open connection sees each write at once. A new connection sees it even after all others were closed."""
    with ledger_factory() as ledger:
        ended(ledger)
        before = (current(ledger), ledger.history(ID))
        with ledger_factory() as other:
            assert (current(other), other.history(ID)) == before
    with ledger_factory() as ledger:
        assert (current(ledger), ledger.history(ID)) == before


def test_enqueue_returns_the_first_task_when_the_key_is_taken(ledger: Ledger) -> None:
    """If an earlier task of the project has the same key, `enqueue` records nothing and returns this task."""
    first = ended(ledger, "tbcdfghj", key="k")
    again = ledger.enqueue(launch(id="tzzzzzzz", key="k", command="other"), attempt())
    assert again == current(ledger, "tbcdfghj")
    assert again.launch == first
    assert ledger.task("tzzzzzzz") is None
    assert len(ledger.tasks(Selection())) == 1


def test_key_is_unique_only_within_its_project(ledger: Ledger) -> None:
    """Two tasks of different projects may have the same key. Any number of tasks may have no key."""
    enqueued(ledger, "taaaaaa1", key="k", project="/a")
    enqueued(ledger, "taaaaaa2", key="k", project="/b")
    enqueued(ledger, "taaaaaa3", key="l", project="/a")
    enqueued(ledger, "taaaaaa4", project="/a")
    enqueued(ledger, "taaaaaa5", project="/a")
    assert len(ledger.tasks(Selection())) == 5


def test_enqueue_records_one_task_when_eight_processes_use_one_key(
    ledger_factory: LedgerFactory,
) -> None:
    """If eight processes enqueue a task with one key at once, all of them receive the id of the same task."""
    ledger_factory().close()
    keys = [f"k{number:02}" for number in range(20)]

    def enqueue(number: int, meet: Callable[[], object]) -> str:
        winners = []
        with ledger_factory() as ledger:
            for key in keys:
                asked = launch(id=f"t{key}aa{number}", key=key)
                meet()
                winners.append(ledger.enqueue(asked, attempt()).id)
        return " ".join(winners)

    answers = set(race(enqueue))
    assert len(answers) == 1
    winners = answers.pop().split()
    assert [winner[1:4] for winner in winners] == keys
    with ledger_factory() as ledger:
        assert [task.id for task in reversed(ledger.tasks(Selection()))] == winners


def test_enqueue_records_every_task_when_eight_processes_use_no_key(ledger_factory: LedgerFactory) -> None:
    """If eight processes enqueue forty tasks without a key, each task is recorded with one attempt."""
    ledger_factory().close()

    def enqueue(number: int, meet: Callable[[], object]) -> str:
        meet()
        for turn in range(5):
            with ledger_factory() as ledger:
                enqueued(ledger, f"taaaaa{number + 2}{turn + 2}")
        return ""

    race(enqueue)
    with ledger_factory() as ledger:
        tasks = ledger.tasks(Selection())
    assert len({task.id for task in tasks}) == 5 * RACERS
    assert {len(task.attempts) for task in tasks} == {1}


# --- add_attempt ----------------------------------------------------------------------------------


def test_add_attempt_queues_the_task_again(ledger: Ledger) -> None:
    """A second attempt is queued, and the ended first attempt stays unchanged."""
    ended(ledger, evidence=exited(3))
    first = current(ledger).current
    second = attempt(2, created_at=NOW + 9 * SECOND, boot="boot-2", pid_namespace=7)
    assert ledger.add_attempt(ID, second)
    assert current(ledger).attempts == (first, second)
    assert current(ledger).state == "queued"


@pytest.mark.parametrize("prepare", [enqueued, running])
def test_add_attempt_returns_false_when_the_newest_attempt_is_live(
    ledger: Ledger, prepare: Callable[[Ledger], Launch]
) -> None:
    """A task with a queued or running attempt stays unchanged."""
    prepare(ledger)
    before = (current(ledger), ledger.history(ID))
    assert not ledger.add_attempt(ID, attempt(2))
    assert (current(ledger), ledger.history(ID)) == before


@pytest.mark.parametrize("number", [0, 1, 3, 4])
def test_add_attempt_returns_false_when_the_number_is_not_the_next(ledger: Ledger, number: int) -> None:
    """Nothing is written if another process was first to retry the task, or if a number was skipped."""
    ended(ledger)
    before = (current(ledger), ledger.history(ID))
    assert not ledger.add_attempt(ID, attempt(number))
    assert (current(ledger), ledger.history(ID)) == before


def test_add_attempt_returns_false_when_the_task_is_unknown(ledger: Ledger) -> None:
    """For an unknown task, `add_attempt` returns False and records no task."""
    assert not ledger.add_attempt("tzzzzzzz", attempt(2))
    assert ledger.tasks(Selection()) == []


def test_add_attempt_succeeds_once_when_eight_processes_retry(ledger_factory: LedgerFactory) -> None:
    """One process gets True, and the task has exactly two attempts."""
    with ledger_factory() as ledger:
        ended(ledger)

    def retry(_: int, meet: Callable[[], object]) -> str:
        with ledger_factory() as ledger:
            meet()
            return str(ledger.add_attempt(ID, attempt(2)))

    assert sorted(race(retry)) == ["False"] * (RACERS - 1) + ["True"]
    with ledger_factory() as ledger:
        assert [each.number for each in current(ledger).attempts] == [1, 2]


# --- start ----------------------------------------------------------------------------------------


def test_start_records_a_queued_attempt_as_running(ledger: Ledger) -> None:
    """The attempt is running and has the given start time."""
    enqueued(ledger)
    assert ledger.start(ID, 1, NOW + SECOND)
    assert current(ledger).current == attempt(state="running", started_at=NOW + SECOND)


def test_attempt_with_a_start_is_recorded_with_two_moves(ledger: Ledger) -> None:
    """`enqueue` and `add_attempt` record an attempt with a start time as queued and then as running."""
    begun = attempt(state="running", started_at=NOW + SECOND)
    ledger.enqueue(launch(), begun)
    assert current(ledger).current == begun
    ledger.settle(settlement(launch()))
    assert ledger.add_attempt(ID, begun.but(number=2, started_at=NOW + 5 * SECOND))
    assert current(ledger).state == "running"
    moves = [(number, before, after) for number, before, after, _ in ledger.history(ID).moves]
    assert moves == [
        *((1, None, "queued"), (1, "queued", "running"), (1, "running", "succeeded")),
        *((2, None, "queued"), (2, "queued", "running")),
    ]


def test_start_returns_false_when_the_attempt_is_not_queued(ledger: Ledger) -> None:
    """A running, ended or unknown attempt stays unchanged."""
    running(ledger)
    assert not ledger.start(ID, 1, NOW + 9 * SECOND)
    assert current(ledger).current.started_at == NOW + SECOND
    assert not ledger.start(ID, 2, NOW)
    assert not ledger.start("tzzzzzzz", 1, NOW)
    assert ledger.settle(settlement(launch()))
    before = current(ledger)
    assert not ledger.start(ID, 1, NOW + 9 * SECOND)
    assert current(ledger) == before


# --- set_condition --------------------------------------------------------------------------------


@pytest.mark.parametrize("condition", CONDITIONS)
def test_condition_is_set_and_cleared_on_a_running_attempt(ledger: Ledger, condition: Condition) -> None:
    """`set_condition` sets and clears the condition of a running attempt, and does not change its state."""
    running(ledger)
    before = current(ledger).current
    ledger.set_condition(ID, 1, condition)
    assert current(ledger).current == before.but(condition=condition)
    ledger.set_condition(ID, 1, None)
    assert current(ledger).current == before


def test_set_condition_leaves_an_ended_attempt_unchanged(ledger: Ledger) -> None:
    """If a keeper sets a condition after the attempt was settled, the attempt stays unchanged."""
    ended(ledger)
    before = current(ledger)
    ledger.set_condition(ID, 1, "stalled")
    assert current(ledger) == before


def test_settle_clears_the_condition(ledger: Ledger) -> None:
    """An ended attempt is neither stalled nor waiting for input."""
    asked = running(ledger)
    ledger.set_condition(ID, 1, "input_required")
    ledger.settle(settlement(asked))
    assert current(ledger).current.condition is None


# --- settle ---------------------------------------------------------------------------------------


def test_settle_writes_state_notice_and_retention_together(ledger: Ledger) -> None:
    """One call of `settle` records the planned state, evidence, notice and deletion date."""
    asked = running(ledger, session="s-1")
    left = (LeftRunning(pid=77, command="sleep 9"), LeftRunning(pid=78, command="\udcff"))
    planned = plan_settlement(
        asked,
        1,
        exited(143, detail="terminated"),
        Intent(kind="timeout", at=NOW),
        now=NOW + 3 * SECOND,
        settled_by="keeper",
        left_running=left,
        output=OutputSize(written=1 << 40, dropped=5, truncated=True),
    )
    assert ledger.settle(planned)
    assert current(ledger).current == attempt(
        state="failed",
        started_at=NOW + SECOND,
        ended_at=NOW + 2 * SECOND,
        settled_at=NOW + 3 * SECOND,
        exit_code=143,
        reason="timeout_incomplete",
        detail="terminated",
        settled_by="keeper",
        delete_after=NOW + 3 * SECOND + asked.retain,
        left_running=left,
        output_bytes=1 << 40,
        output_dropped=5,
        output_truncated=True,
    )
    history = ledger.history(ID)
    assert history.evidence == ((1, NOW + 3 * SECOND, planned.evidence),)
    (notice,) = history.notices
    assert (notice.id, notice.task, notice.attempt) == (planned.notice_id, ID, 1)
    assert (notice.kind, notice.session, notice.state) == ("ended", "s-1", "pending")
    assert notice.created_at == NOW + 3 * SECOND


def test_settle_ends_a_queued_attempt(ledger: Ledger) -> None:
    """`settle` also ends an attempt that never started. It is recorded as failed, without a start time."""
    asked = enqueued(ledger)
    seen = Evidence(kind="not_started", seen_by="keeper", started="no", detail="no such file")
    assert ledger.settle(settlement(asked, seen))
    ending = current(ledger).current
    assert (ending.state, ending.reason, ending.started_at) == ("failed", "not_started", None)


def test_second_settle_adds_only_its_evidence(ledger: Ledger) -> None:
    """A second `settle` returns False and adds only its evidence.

    The first ending keeps its notice and deletion date.
    """
    asked = ended(ledger, evidence=exited(0))
    before, notices = current(ledger), ledger.history(ID).notices
    late = settlement(asked, exited(9), settled_by="reconciler", settled_at=NOW + 99 * SECOND)
    assert not ledger.settle(late)
    assert current(ledger) == before
    history = ledger.history(ID)
    assert history.notices == notices
    assert [(seen.exit_code, at) for _, at, seen in history.evidence] == [
        (0, NOW + 3 * SECOND),
        (9, NOW + 99 * SECOND),
    ]


def test_second_settle_with_the_same_settlement_leaves_the_task_unchanged(ledger: Ledger) -> None:
    """If the same settlement is made twice, the second call changes nothing.

    A process that does not know whether its call has succeeded may repeat the call.
    """
    asked = running(ledger)
    assert ledger.settle(settlement(asked))
    before = current(ledger)
    assert not ledger.settle(settlement(asked))
    assert current(ledger) == before
    assert len(ledger.history(ID).notices) == 1


def test_lost_attempt_stays_lost_when_its_exit_is_found(ledger: Ledger) -> None:
    """If the exit of a lost attempt is found later, the exit code becomes evidence, and the attempt stays lost."""
    asked = ended(ledger, evidence=vanished())
    assert not ledger.settle(settlement(asked, exited(0)))
    assert current(ledger).current.exit_code is None
    history = ledger.history(ID)
    assert [seen.kind for _, _, seen in history.evidence] == ["vanished", "exited"]
    assert [notice.kind for notice in history.notices] == ["lost"]
    assert current(ledger).state == "lost"


@pytest.mark.parametrize("start_it", [False, True])
def test_settle_of_an_older_attempt_adds_only_its_evidence(ledger: Ledger, *, start_it: bool) -> None:
    """`settle` of an older attempt records only its evidence. The newer attempt, queued or running, is unchanged."""
    asked = ended(ledger, evidence=vanished())
    ledger.add_attempt(ID, attempt(2))
    if start_it:
        ledger.start(ID, 2, NOW + 5 * SECOND)
    before, notices = current(ledger), ledger.history(ID).notices
    assert not ledger.settle(settlement(asked, exited(0), number=1))
    assert current(ledger) == before
    assert ledger.history(ID).notices == notices
    assert [(n, seen.kind) for n, _, seen in ledger.history(ID).evidence] == [
        (1, "vanished"),
        (1, "exited"),
    ]


def test_each_attempt_has_its_own_ending(ledger: Ledger) -> None:
    """Each attempt has its own state and its own notice."""
    asked = ended(ledger, evidence=exited(1))
    ledger.add_attempt(ID, attempt(2, created_at=NOW + 5 * SECOND))
    ledger.start(ID, 2, NOW + 6 * SECOND)
    assert ledger.settle(settlement(asked, exited(0), number=2, settled_at=NOW + 7 * SECOND))
    assert [each.state for each in current(ledger).attempts] == ["failed", "succeeded"]
    assert [notice.attempt for notice in ledger.history(ID).notices] == [1, 2]


def test_settle_of_an_unknown_task_writes_nothing(ledger: Ledger) -> None:
    """`settle` returns False, and records neither a notice nor evidence."""
    assert not ledger.settle(settlement(launch(id="tzzzzzzz")))
    assert ledger.history("tzzzzzzz").notices == ()
    assert ledger.history("tzzzzzzz").evidence == ()


def test_settle_succeeds_once_when_eight_processes_settle(ledger_factory: LedgerFactory) -> None:
    """The attempt has one ending and one notice. The evidence of all eight processes is recorded."""
    with ledger_factory() as ledger:
        asked = running(ledger)

    def settle(number: int, meet: Callable[[], object]) -> str:
        with ledger_factory() as ledger:
            meet()
            won = ledger.settle(settlement(asked, exited(number), settled_by=f"r{number}"))
            return f"{won} {number}"

    answers = [answer.split() for answer in race(settle)]
    (winner,) = [int(number) for won, number in answers if won == "True"]
    with ledger_factory() as ledger:
        assert current(ledger).current.exit_code == winner
        assert current(ledger).current.settled_by == f"r{winner}"
        history = ledger.history(ID)
    assert len(history.notices) == 1
    assert sorted(seen.exit_code or 0 for _, _, seen in history.evidence) == list(range(RACERS))


def test_settle_writes_nothing_when_its_last_write_fails(ledger: Ledger) -> None:
    """If `settle` cannot write the notice, it writes neither the state nor the evidence."""
    asked = ended(ledger, "tbcdfghj")
    taken = ledger.history("tbcdfghj").notices[0].id
    running(ledger)
    before = (current(ledger), ledger.history(ID))
    with pytest.raises(OutliveError):
        ledger.settle(settlement(asked.but(id=ID), notice_id=taken))
    assert (current(ledger), ledger.history(ID)) == before
    assert ledger.settle(settlement(asked.but(id=ID)))


# --- add_evidence ---------------------------------------------------------------------------------


def test_add_evidence_records_evidence_without_ending_the_attempt(ledger: Ledger) -> None:
    """`add_evidence` records every field of the evidence, and does not change the task."""
    running(ledger)
    before = current(ledger)
    seen = Evidence(
        kind="signalled",
        seen_by="somebody",
        signal=9,
        started="unknown",
        cause="reboot",
        detail="a sentence",
        at=NOW,
    )
    ledger.add_evidence(ID, 1, seen, NOW + SECOND)
    assert current(ledger) == before
    assert ledger.history(ID).evidence == ((1, NOW + SECOND, seen),)
    assert ledger.history(ID).notices == ()


# --- acknowledge ----------------------------------------------------------------------------------


def test_launching_session_acknowledges_the_notice_by_reading_the_result(ledger: Ledger) -> None:
    """If the launching session reads the result, the notice is acknowledged.

    A second reading finds no pending notice.
    """
    ended(ledger, session="s-1")
    assert read_result(ledger, ID, "s-1") == 1
    assert [notice.state for notice in ledger.history(ID).notices] == ["acked"]
    assert read_result(ledger, ID, "s-1") == 0


@pytest.mark.parametrize("session", ["s-2", "", "S-1", None])
def test_notice_stays_pending_when_another_session_reads_the_result(ledger: Ledger, session: str | None) -> None:
    """If another session, or a reader without a session, reads the result, the notice stays pending."""
    ended(ledger, session="s-1")
    assert read_result(ledger, ID, session) == 0
    assert [notice.state for notice in ledger.history(ID).notices] == ["pending"]


def test_ending_without_a_session_is_acknowledged_by_no_session(ledger: Ledger) -> None:
    """If a task was launched without a session, no session acknowledges its ending by reading the result."""
    ended(ledger)
    enqueued(ledger, "tbcdfghj", session="s-1")
    assert read_result(ledger, ID, "s-1") == 0


def test_reading_the_result_acknowledges_the_notices_of_all_attempts(ledger: Ledger) -> None:
    """Reading the result acknowledges the notices of all attempts of the task.

    Notices of other tasks stay pending, and dismissed notices stay dismissed.
    """
    asked = ended(ledger, session="s-1", evidence=exited(1))
    ledger.add_attempt(ID, attempt(2))
    ledger.settle(settlement(asked, vanished(), number=2))
    ended(ledger, "tbcdfghj", session="s-1")
    ended(ledger, "tbcdfghk", session="s-1", notify="never")
    assert read_result(ledger, ID, "s-1") == 2
    assert ledger.history("tbcdfghj").notices[0].state == "pending"
    assert read_result(ledger, "tbcdfghk", "s-1") == 0
    assert ledger.history("tbcdfghk").notices[0].state == "dismissed"


def test_reading_the_result_of_a_running_task_acknowledges_nothing(ledger: Ledger) -> None:
    """Reading the result of a running task acknowledges nothing, because there is no notice yet."""
    running(ledger, session="s-1")
    assert read_result(ledger, ID, "s-1") == 0

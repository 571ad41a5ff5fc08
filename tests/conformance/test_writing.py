"""What a ledger promises of its writes, sentence by sentence."""

from __future__ import annotations

import multiprocessing
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from outlive.domain.errors import OutliveError
from outlive.domain.evidence import Evidence, Intent
from outlive.domain.lifecycle import CONDITIONS
from outlive.domain.settlement import OutputSize, plan_settlement
from outlive.domain.task import LeftRunning, Task
from outlive.ledger.contract import Selection
from tests.conformance.steps import current, ended, enqueued, read_result, running, settlement
from tests.unit.values import NOW, SECOND, attempt, exited, launch, vanished

if TYPE_CHECKING:
    from collections.abc import Callable

    from outlive.domain.lifecycle import Condition
    from outlive.domain.task import Launch
    from outlive.ledger.contract import Ledger
    from tests.conformance.conftest import LedgerFactory

ID = "t7k2m9q4"
RACERS = 8


def race(entrant: Callable[[int, Callable[[], object]], str]) -> list[str]:
    """What eight processes answer. Each is given its number, and a way to wait for the others."""
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


def test_enqueue_records_a_new_task_as_queued_with_its_first_attempt(ledger: Ledger) -> None:
    """With everything that was asked for, and no ending."""
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


def test_whatever_a_method_returned_is_durable(ledger_factory: LedgerFactory) -> None:
    """Another opener sees it at once, and whoever opens it after everybody has closed it."""
    with ledger_factory() as ledger:
        ended(ledger)
        before = (current(ledger), ledger.history(ID))
        with ledger_factory() as other:
            assert (current(other), other.history(ID)) == before
    with ledger_factory() as ledger:
        assert (current(ledger), ledger.history(ID)) == before


def test_a_key_that_the_project_has_returns_its_task_and_writes_nothing(ledger: Ledger) -> None:
    """Same project and key: the first task, whatever its state."""
    first = ended(ledger, "tbcdfghj", key="k")
    again = ledger.enqueue(launch(id="tzzzzzzz", key="k", command="other"), attempt())
    assert again == current(ledger, "tbcdfghj")
    assert again.launch == first
    assert ledger.task("tzzzzzzz") is None
    assert len(ledger.tasks(Selection())) == 1


def test_a_key_holds_within_its_project_only(ledger: Ledger) -> None:
    """Another project's same key is another key; no key is never the same."""
    enqueued(ledger, "taaaaaa1", key="k", project="/a")
    enqueued(ledger, "taaaaaa2", key="k", project="/b")
    enqueued(ledger, "taaaaaa3", key="l", project="/a")
    enqueued(ledger, "taaaaaa4", project="/a")
    enqueued(ledger, "taaaaaa5", project="/a")
    assert len(ledger.tasks(Selection())) == 5


def test_of_many_racing_with_one_key_exactly_one_gets_its_own_id_back(
    ledger_factory: LedgerFactory,
) -> None:
    """Eight processes, key after key, begun together: all name the same task."""
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


def test_launches_without_a_key_do_not_disturb_each_other(ledger_factory: LedgerFactory) -> None:
    """Eight processes, five tasks each: all forty are there, each with its first attempt."""
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


def test_a_further_attempt_follows_an_ended_one(ledger: Ledger) -> None:
    """The task is queued again, and its first ending stays as it was."""
    ended(ledger, evidence=exited(3))
    first = current(ledger).current
    second = attempt(2, created_at=NOW + 9 * SECOND, boot="boot-2", pid_namespace=7)
    assert ledger.add_attempt(ID, second)
    assert current(ledger).attempts == (first, second)
    assert current(ledger).state == "queued"


@pytest.mark.parametrize("prepare", [enqueued, running])
def test_no_attempt_is_added_while_the_newest_lives(ledger: Ledger, prepare: Callable[[Ledger], Launch]) -> None:
    """False, and nothing is written."""
    prepare(ledger)
    before = (current(ledger), ledger.history(ID))
    assert not ledger.add_attempt(ID, attempt(2))
    assert (current(ledger), ledger.history(ID)) == before


@pytest.mark.parametrize("number", [0, 1, 3, 4])
def test_an_attempt_that_is_not_the_next_one_is_not_added(ledger: Ledger, number: int) -> None:
    """Somebody else's retry came first, or the caller skipped one: False, nothing written."""
    ended(ledger)
    before = (current(ledger), ledger.history(ID))
    assert not ledger.add_attempt(ID, attempt(number))
    assert (current(ledger), ledger.history(ID)) == before


def test_no_attempt_is_added_to_an_unknown_task(ledger: Ledger) -> None:
    """There is nothing to try again."""
    assert not ledger.add_attempt("tzzzzzzz", attempt(2))
    assert ledger.tasks(Selection()) == []


def test_of_many_retries_exactly_one_is_added(ledger_factory: LedgerFactory) -> None:
    """Eight processes that all read the same ending."""
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


def test_start_moves_a_queued_attempt_to_running(ledger: Ledger) -> None:
    """With the moment it began."""
    enqueued(ledger)
    assert ledger.start(ID, 1, NOW + SECOND)
    assert current(ledger).current == attempt(state="running", started_at=NOW + SECOND)


def test_an_attempt_can_be_recorded_as_begun(ledger: Ledger) -> None:
    """In one step, and still as two moves; for a further attempt too."""
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


def test_start_is_refused_when_the_attempt_is_not_queued_any_more(ledger: Ledger) -> None:
    """Running, ended or unknown: False, and the first start stays the start."""
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
def test_a_condition_is_said_of_an_attempt_that_runs(ledger: Ledger, condition: Condition) -> None:
    """And taken back; its state is not touched by either."""
    running(ledger)
    before = current(ledger).current
    ledger.set_condition(ID, 1, condition)
    assert current(ledger).current == before.but(condition=condition)
    ledger.set_condition(ID, 1, None)
    assert current(ledger).current == before


def test_an_ended_attempt_keeps_what_it_had(ledger: Ledger) -> None:
    """A keeper that is late with a condition changes nothing."""
    ended(ledger)
    before = current(ledger)
    ledger.set_condition(ID, 1, "stalled")
    assert current(ledger) == before


def test_a_condition_ends_with_its_attempt(ledger: Ledger) -> None:
    """Nothing that has ended is stalled or waits for input."""
    asked = running(ledger)
    ledger.set_condition(ID, 1, "input_required")
    ledger.settle(settlement(asked))
    assert current(ledger).current.condition is None


# --- settle ---------------------------------------------------------------------------------------


def test_settle_writes_state_notice_and_retention_together(ledger: Ledger) -> None:
    """The whole ending, as it was planned."""
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


def test_a_queued_attempt_can_be_settled(ledger: Ledger) -> None:
    """It could not be started, or nobody is left who would."""
    asked = enqueued(ledger)
    seen = Evidence(kind="not_started", seen_by="keeper", started="no", detail="no such file")
    assert ledger.settle(settlement(asked, seen))
    ending = current(ledger).current
    assert (ending.state, ending.reason, ending.started_at) == ("failed", "not_started", None)


def test_settling_again_keeps_only_the_evidence(ledger: Ledger) -> None:
    """False; the first ending, its notice and its date stay, and what was seen is added."""
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


def test_settling_the_same_twice_is_settling_once(ledger: Ledger) -> None:
    """A writer that does not know whether its first try arrived may simply try again."""
    asked = running(ledger)
    assert ledger.settle(settlement(asked))
    before = current(ledger)
    assert not ledger.settle(settlement(asked))
    assert current(ledger) == before
    assert len(ledger.history(ID).notices) == 1


def test_lost_is_final(ledger: Ledger) -> None:
    """The exit that turns up later is added to the attempt; the ending is not reopened."""
    asked = ended(ledger, evidence=vanished())
    assert not ledger.settle(settlement(asked, exited(0)))
    assert current(ledger).current.exit_code is None
    history = ledger.history(ID)
    assert [seen.kind for _, _, seen in history.evidence] == ["vanished", "exited"]
    assert [notice.kind for notice in history.notices] == ["lost"]
    assert current(ledger).state == "lost"


@pytest.mark.parametrize("start_it", [False, True])
def test_the_late_word_of_an_older_attempt_changes_nothing(ledger: Ledger, *, start_it: bool) -> None:
    """A newer attempt has begun: only the evidence is kept, under the older one's number."""
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


def test_each_attempt_has_an_ending_of_its_own(ledger: Ledger) -> None:
    """Its notice, its retention and its history; the task's state is the newest one's."""
    asked = ended(ledger, evidence=exited(1))
    ledger.add_attempt(ID, attempt(2, created_at=NOW + 5 * SECOND))
    ledger.start(ID, 2, NOW + 6 * SECOND)
    assert ledger.settle(settlement(asked, exited(0), number=2, settled_at=NOW + 7 * SECOND))
    assert [each.state for each in current(ledger).attempts] == ["failed", "succeeded"]
    assert [notice.attempt for notice in ledger.history(ID).notices] == [1, 2]


def test_settling_what_is_unknown_writes_nothing(ledger: Ledger) -> None:
    """No task, no notice, no evidence."""
    assert not ledger.settle(settlement(launch(id="tzzzzzzz")))
    assert ledger.history("tzzzzzzz").notices == ()
    assert ledger.history("tzzzzzzz").evidence == ()


def test_of_many_who_settle_exactly_one_does(ledger_factory: LedgerFactory) -> None:
    """A keeper and seven reconcilers: one ending, one notice, and everybody's evidence."""
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


def test_a_write_that_fails_writes_nothing(ledger: Ledger) -> None:
    """State, notice and retention, or none of them: also when the last of the writes fails."""
    asked = ended(ledger, "tbcdfghj")
    taken = ledger.history("tbcdfghj").notices[0].id
    running(ledger)
    before = (current(ledger), ledger.history(ID))
    with pytest.raises(OutliveError):
        ledger.settle(settlement(asked.but(id=ID), notice_id=taken))
    assert (current(ledger), ledger.history(ID)) == before
    assert ledger.settle(settlement(asked.but(id=ID)))


# --- add_evidence ---------------------------------------------------------------------------------


def test_evidence_is_kept_without_any_consequence(ledger: Ledger) -> None:
    """Every field of it; the task stays as it was."""
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


def test_the_session_that_launched_acknowledges_its_ending(ledger: Ledger) -> None:
    """Once: the second time there is nothing left to acknowledge."""
    ended(ledger, session="s-1")
    assert read_result(ledger, ID, "s-1") == 1
    assert [notice.state for notice in ledger.history(ID).notices] == ["acked"]
    assert read_result(ledger, ID, "s-1") == 0


@pytest.mark.parametrize("session", ["s-2", "", "S-1", None])
def test_nobody_else_acknowledges_it(ledger: Ledger, session: str | None) -> None:
    """Another session, or a person outside of any: it is still owed."""
    ended(ledger, session="s-1")
    assert read_result(ledger, ID, session) == 0
    assert [notice.state for notice in ledger.history(ID).notices] == ["pending"]


def test_what_no_session_launched_no_session_acknowledges(ledger: Ledger) -> None:
    """It is owed to nobody."""
    ended(ledger)
    enqueued(ledger, "tbcdfghj", session="s-1")
    assert read_result(ledger, ID, "s-1") == 0


def test_every_ending_of_the_task_is_acknowledged_and_counted(ledger: Ledger) -> None:
    """The failed first try too; of other tasks none; of a dismissed one nothing."""
    asked = ended(ledger, session="s-1", evidence=exited(1))
    ledger.add_attempt(ID, attempt(2))
    ledger.settle(settlement(asked, vanished(), number=2))
    ended(ledger, "tbcdfghj", session="s-1")
    ended(ledger, "tbcdfghk", session="s-1", notify="never")
    assert read_result(ledger, ID, "s-1") == 2
    assert ledger.history("tbcdfghj").notices[0].state == "pending"
    assert read_result(ledger, "tbcdfghk", "s-1") == 0
    assert ledger.history("tbcdfghk").notices[0].state == "dismissed"


def test_there_is_nothing_to_acknowledge_before_the_end(ledger: Ledger) -> None:
    """A live attempt has no notice."""
    running(ledger, session="s-1")
    assert read_result(ledger, ID, "s-1") == 0

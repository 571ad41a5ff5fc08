"""The contract of the ledger's methods that read. Each sentence of the contract has a test."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from outlive.domain.tasks.evidence import Evidence
from outlive.ledger.contract import Selection
from tests.conformance.steps import current, ended, enqueued, read_result, running, settlement
from tests.unit.values import NOW, SECOND, attempt, exited, launch, vanished

if TYPE_CHECKING:
    from outlive.ledger.contract import Ledger

ID = "t7k2m9q4"


def selected(ledger: Ledger, **wanted: object) -> list[str]:
    """Return the ids of the selected tasks."""
    return [task.id for task in ledger.tasks(Selection().but(**wanted))]


# --- by id and by key -----------------------------------------------------------------------------


def test_task_is_found_only_by_its_whole_id(ledger: Ledger) -> None:
    """`task` returns None for a prefix of the id, for a longer text, and for the id in upper case."""
    asked = enqueued(ledger)
    assert current(ledger).launch == asked
    for other in ("t7k2m9q", "t7k2m9q44", "", "T7K2M9Q4"):
        assert ledger.task(other) is None


def test_with_key_finds_a_task_by_project_and_key(ledger: Ledger) -> None:
    """`with_key` returns None if the project or the key differs."""
    enqueued(ledger, key="k", project="/a")
    found = ledger.with_key("/a", "k")
    assert found == current(ledger)
    assert ledger.with_key("/b", "k") is None
    assert ledger.with_key("/a", "K") is None


def test_matching_returns_ids_newest_first_up_to_the_limit(ledger: Ledger) -> None:
    """`matching` returns the ids that begin with a prefix, the last recorded first.

    With a limit of two, the caller learns whether the prefix is ambiguous.
    """
    for id_ in ("tabcdef2", "tabzzzz9", "tabcdef1", "tbcdfghj"):
        enqueued(ledger, id_)
    assert list(ledger.matching("tab", 10)) == ["tabcdef1", "tabzzzz9", "tabcdef2"]
    assert list(ledger.matching("tab", 2)) == ["tabcdef1", "tabzzzz9"]
    assert list(ledger.matching("tabcdef2", 2)) == ["tabcdef2"]
    assert list(ledger.matching("tabcdef22", 2)) == []
    assert list(ledger.matching("x", 2)) == []


# --- tasks ----------------------------------------------------------------------------------------


def test_tasks_are_ordered_by_recording_when_clocks_disagree(ledger: Ledger) -> None:
    """Tasks are returned in the order in which they were recorded, even if their creation times have another order."""
    hours = {"taaaaaa1": 0, "taaaaaa2": -5, "taaaaaa3": 7, "taaaaaa4": -9, "taaaaaa5": 0}
    for id_, hour in hours.items():
        enqueued(ledger, id_, created_at=NOW + timedelta(hours=hour))
    assert selected(ledger) == sorted(hours, reverse=True)
    assert selected(ledger, limit=2) == ["taaaaaa5", "taaaaaa4"]
    assert selected(ledger, limit=0) == []


def test_order_of_tasks_is_unchanged_by_a_retry(ledger: Ledger) -> None:
    """A task keeps its place after a further attempt."""
    ended(ledger, "taaaaaa1")
    enqueued(ledger, "taaaaaa2")
    ledger.add_attempt("taaaaaa1", attempt(2))
    assert selected(ledger) == ["taaaaaa2", "taaaaaa1"]


def test_selection_is_narrowed_by_every_given_field(ledger: Ledger) -> None:
    """A selection by project, session, group, state or time excludes all other tasks. The fields can be combined."""
    ended(ledger, "taaaaaa1", project="/a", session="s-1", group="g")
    running(ledger, "taaaaaa2", project="/a", session="s-2", group="g")
    enqueued(ledger, "taaaaaa3", project="/b", session="s-1")
    ended(ledger, "taaaaaa4", project="/a", session="s-1", evidence=exited(1))
    running(ledger, "taaaaaa5", project="/a", created_at=NOW + timedelta(hours=1))
    assert selected(ledger, project="/a") == ["taaaaaa5", "taaaaaa4", "taaaaaa2", "taaaaaa1"]
    assert selected(ledger, session="s-1") == ["taaaaaa4", "taaaaaa3", "taaaaaa1"]
    assert selected(ledger, group="g") == ["taaaaaa2", "taaaaaa1"]
    assert selected(ledger, states=("running",)) == ["taaaaaa5", "taaaaaa2"]
    assert selected(ledger, states=("failed", "queued")) == ["taaaaaa4", "taaaaaa3"]
    assert selected(ledger, since=NOW + SECOND) == ["taaaaaa5"]
    assert selected(ledger, since=NOW + timedelta(hours=1)) == ["taaaaaa5"]
    assert selected(ledger, project="/a", session="s-1", states=("failed",)) == ["taaaaaa4"]
    assert selected(ledger, project="/b", group="g") == []
    assert selected(ledger, project="/a", states=("running",), limit=1) == ["taaaaaa5"]


def test_selection_by_state_compares_the_newest_attempt(ledger: Ledger) -> None:
    """A selection by state compares the state of a task's newest attempt only."""
    ended(ledger, evidence=exited(1))
    assert selected(ledger, states=("failed",)) == [ID]
    ledger.add_attempt(ID, attempt(2))
    assert selected(ledger, states=("failed",)) == []
    assert selected(ledger, states=("queued",)) == [ID]
    assert selected(ledger, states=("queued", "failed")) == [ID]
    ledger.start(ID, 2, NOW)
    assert selected(ledger, states=("queued",)) == []
    assert selected(ledger, states=("running",)) == [ID]


def test_selected_tasks_have_all_their_attempts(ledger: Ledger) -> None:
    """`tasks` returns each task exactly as `task` does."""
    ended(ledger, "taaaaaa1")
    ledger.add_attempt("taaaaaa1", attempt(2))
    running(ledger, "taaaaaa2")
    assert list(ledger.tasks(Selection())) == [
        current(ledger, "taaaaaa2"),
        current(ledger, "taaaaaa1"),
    ]


def test_newest_leaves_out_tasks_that_had_ended_before_the_moment(ledger: Ledger) -> None:
    """`newest` returns live tasks, and tasks that ended after the given time. The last recorded task comes first."""
    ended(ledger, "taaaaaa1", evidence=exited(at=NOW + SECOND))
    ended(ledger, "taaaaaa2", evidence=exited(at=NOW + 9 * SECOND))
    running(ledger, "taaaaaa3")
    found = ledger.newest(10, None, NOW + 5 * SECOND)
    assert list(found) == [current(ledger, "taaaaaa3"), current(ledger, "taaaaaa2")]


def test_newest_counts_tasks_of_the_project_before_it_leaves_any_out(ledger: Ledger) -> None:
    """The limit of `newest` also counts tasks that are left out, because they ended too early.

    No older task replaces them.
    """
    running(ledger, "taaaaaa1", project="/a")
    ended(ledger, "taaaaaa2", project="/a")
    running(ledger, "taaaaaa3", project="/b")
    assert not ledger.newest(1, "/a", NOW + 60 * SECOND)
    assert [task.id for task in ledger.newest(2, "/a", NOW + 60 * SECOND)] == ["taaaaaa1"]
    assert [task.id for task in ledger.newest(9, None, NOW + 60 * SECOND)] == ["taaaaaa3", "taaaaaa1"]


# --- children and unsettled -----------------------------------------------------------------------


def test_children_are_the_tasks_launched_inside_the_given_tasks(ledger: Ledger) -> None:
    """`children` returns the children of all given tasks, but no grandchildren."""
    enqueued(ledger, "taaaaaa1")
    enqueued(ledger, "taaaaaa2", parent="taaaaaa1")
    ended(ledger, "taaaaaa3", parent="taaaaaa1")
    enqueued(ledger, "taaaaaa4", parent="taaaaaa2")
    assert set(ledger.children(["taaaaaa1"])) == {"taaaaaa2", "taaaaaa3"}
    assert set(ledger.children(["taaaaaa1", "taaaaaa2"])) == {"taaaaaa2", "taaaaaa3", "taaaaaa4"}
    assert list(ledger.children(["taaaaaa4"])) == []
    assert list(ledger.children([])) == []


def test_unsettled_returns_tasks_whose_newest_attempt_has_not_ended(ledger: Ledger) -> None:
    """Queued, running and retried tasks are returned, and ended tasks are not."""
    enqueued(ledger, "taaaaaa1")
    running(ledger, "taaaaaa2")
    ended(ledger, "taaaaaa3")
    ended(ledger, "taaaaaa4", evidence=vanished())
    ended(ledger, "taaaaaa5")
    ledger.add_attempt("taaaaaa5", attempt(2))
    assert {task.id for task in ledger.unsettled()} == {"taaaaaa1", "taaaaaa2", "taaaaaa5"}
    assert current(ledger, "taaaaaa2") in ledger.unsettled()


# --- history --------------------------------------------------------------------------------------


def test_history_lists_moves_evidence_and_notices_oldest_first(ledger: Ledger) -> None:
    """The history of a task has its moves, evidence and notices, oldest first.

    It includes evidence that came after the first attempt had ended.
    """
    asked = ended(ledger, evidence=vanished())
    ledger.settle(settlement(asked, exited(5), settled_at=NOW + 4 * SECOND))
    ledger.add_attempt(ID, attempt(2, created_at=NOW + 5 * SECOND))
    ledger.start(ID, 2, NOW + 6 * SECOND)
    ledger.settle(settlement(asked, exited(0), number=2, settled_at=NOW + 7 * SECOND))
    history = ledger.history(ID)
    assert history.moves == (
        (1, None, "queued", NOW),
        (1, "queued", "running", NOW + SECOND),
        (1, "running", "lost", NOW + 3 * SECOND),
        (2, None, "queued", NOW + 5 * SECOND),
        (2, "queued", "running", NOW + 6 * SECOND),
        (2, "running", "succeeded", NOW + 7 * SECOND),
    )
    assert [(n, seen.kind, seen.exit_code) for n, _, seen in history.evidence] == [
        (1, "vanished", None),
        (1, "exited", 5),
        (2, "exited", 0),
    ]
    assert [(notice.attempt, notice.kind) for notice in history.notices] == [
        (1, "lost"),
        (2, "ended"),
    ]


def test_history_contains_only_the_given_task(ledger: Ledger) -> None:
    """The history has no entry of another task, and the history of an unknown task is empty."""
    ended(ledger, "taaaaaa1")
    ended(ledger, "taaaaaa2")
    assert {notice.task for notice in ledger.history("taaaaaa1").notices} == {"taaaaaa1"}
    nothing = ledger.history("tzzzzzzz")
    assert (nothing.moves, nothing.evidence, nothing.notices) == ((), (), ())


# --- names that are not UTF-8 ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["caf\udce9", "\udcff\udcfe", "a\nb", "漢字 🎉", "'; --", "x" * 500])
def test_names_are_returned_byte_for_byte(ledger: Ledger, name: str) -> None:
    """Commands, paths and other names are unchanged, even if they are not UTF-8."""
    asked = ended(
        ledger,
        command=f"cat {name}",
        argv=("cat", name),
        cwd=f"/home/{name}",
        project=f"/home/{name}",
        description=name,
        session=name,
        group=name,
        key=name,
    )
    assert current(ledger).launch == asked
    assert ledger.history(ID).notices[0].session == name
    found = ledger.with_key(f"/home/{name}", name)
    assert found is not None
    assert found.id == ID
    assert selected(ledger, project=f"/home/{name}", session=name, group=name) == [ID]
    assert selected(ledger, project=f"/home/{name}x") == []
    assert ledger.enqueue(asked.but(id="tzzzzzzz"), attempt()).id == ID
    assert read_result(ledger, ID, name) == 1


def test_keys_differ_when_only_bytes_outside_utf8_differ(ledger: Ledger) -> None:
    """Three keys that differ only in bytes outside of UTF-8 belong to three tasks.

    So such bytes must not be replaced by U+FFFD.
    """
    enqueued(ledger, "taaaaaa1", key="\udcff")
    enqueued(ledger, "taaaaaa2", key="\udcfe")
    enqueued(ledger, "taaaaaa3", key="\ufffd")
    assert len(ledger.tasks(Selection())) == 3


# --- times ----------------------------------------------------------------------------------------


def test_times_and_durations_are_exact_to_the_microsecond(ledger: Ledger) -> None:
    """Times and durations are returned as they were recorded, without rounding."""
    asked = launch(
        created_at=NOW + timedelta(microseconds=1),
        timeout=timedelta(microseconds=1),
        retain=timedelta(days=3650, microseconds=999_999),
    )
    ledger.enqueue(asked, attempt(created_at=NOW + timedelta(microseconds=2)))
    assert current(ledger).launch == asked
    assert current(ledger).current.created_at == NOW + timedelta(microseconds=2)
    seen = Evidence(kind="exited", seen_by="w", exit_code=0, at=NOW + timedelta(microseconds=7))
    ledger.start(ID, 1, NOW)
    ledger.settle(settlement(asked, seen))
    assert current(ledger).current.ended_at == NOW + timedelta(microseconds=7)

"""What a ledger promises of its reads, sentence by sentence."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from outlive.domain.evidence import Evidence
from outlive.ledger.contract import Selection
from tests.conformance.steps import current, ended, enqueued, read_result, running, settlement
from tests.unit.values import NOW, SECOND, attempt, exited, launch, vanished

if TYPE_CHECKING:
    from outlive.ledger.contract import Ledger

ID = "t7k2m9q4"


def selected(ledger: Ledger, **wanted: object) -> list[str]:
    """The ids of the selected tasks."""
    return [task.id for task in ledger.tasks(Selection().but(**wanted))]


# --- by id and by key -----------------------------------------------------------------------------


def test_a_task_is_found_by_its_whole_id_only(ledger: Ledger) -> None:
    """A prefix is a question for `matching`."""
    asked = enqueued(ledger)
    assert current(ledger).launch == asked
    for other in ("t7k2m9q", "t7k2m9q44", "", "T7K2M9Q4"):
        assert ledger.task(other) is None


def test_a_task_is_found_by_its_key_in_its_project(ledger: Ledger) -> None:
    """Both have to be right."""
    enqueued(ledger, key="k", project="/a")
    found = ledger.with_key("/a", "k")
    assert found == current(ledger)
    assert ledger.with_key("/b", "k") is None
    assert ledger.with_key("/a", "K") is None


def test_prefixes_match_newest_first_up_to_the_limit(ledger: Ledger) -> None:
    """By the order of recording; the limit lets a caller ask for two to learn of ambiguity."""
    for id_ in ("tabcdef2", "tabzzzz9", "tabcdef1", "tbcdfghj"):
        enqueued(ledger, id_)
    assert list(ledger.matching("tab", 10)) == ["tabcdef1", "tabzzzz9", "tabcdef2"]
    assert list(ledger.matching("tab", 2)) == ["tabcdef1", "tabzzzz9"]
    assert list(ledger.matching("tabcdef2", 2)) == ["tabcdef2"]
    assert list(ledger.matching("tabcdef22", 2)) == []
    assert list(ledger.matching("x", 2)) == []


# --- tasks ----------------------------------------------------------------------------------------


def test_tasks_come_newest_first_by_their_recording(ledger: Ledger) -> None:
    """Not by any clock: one that goes backwards changes no order."""
    hours = {"taaaaaa1": 0, "taaaaaa2": -5, "taaaaaa3": 7, "taaaaaa4": -9, "taaaaaa5": 0}
    for id_, hour in hours.items():
        enqueued(ledger, id_, created_at=NOW + timedelta(hours=hour))
    assert selected(ledger) == sorted(hours, reverse=True)
    assert selected(ledger, limit=2) == ["taaaaaa5", "taaaaaa4"]
    assert selected(ledger, limit=0) == []


def test_a_retry_does_not_change_the_order(ledger: Ledger) -> None:
    """A task is as old as its recording."""
    ended(ledger, "taaaaaa1")
    enqueued(ledger, "taaaaaa2")
    ledger.add_attempt("taaaaaa1", attempt(2))
    assert selected(ledger) == ["taaaaaa2", "taaaaaa1"]


def test_every_field_that_is_given_narrows(ledger: Ledger) -> None:
    """Project, session, group, states and time, alone and together."""
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


def test_the_newest_attempt_decides_whether_a_state_is_meant(ledger: Ledger) -> None:
    """A task that failed and runs again is running."""
    ended(ledger, evidence=exited(1))
    assert selected(ledger, states=("failed",)) == [ID]
    ledger.add_attempt(ID, attempt(2))
    assert selected(ledger, states=("failed",)) == []
    assert selected(ledger, states=("queued",)) == [ID]
    assert selected(ledger, states=("queued", "failed")) == [ID]
    ledger.start(ID, 2, NOW)
    assert selected(ledger, states=("queued",)) == []
    assert selected(ledger, states=("running",)) == [ID]


def test_selected_tasks_are_whole(ledger: Ledger) -> None:
    """With every attempt, as `task` would give them."""
    ended(ledger, "taaaaaa1")
    ledger.add_attempt("taaaaaa1", attempt(2))
    running(ledger, "taaaaaa2")
    assert list(ledger.tasks(Selection())) == [
        current(ledger, "taaaaaa2"),
        current(ledger, "taaaaaa1"),
    ]


# --- children and unsettled -----------------------------------------------------------------------


def test_children_are_what_was_launched_from_inside(ledger: Ledger) -> None:
    """Of any of the given tasks, one generation at a time."""
    enqueued(ledger, "taaaaaa1")
    enqueued(ledger, "taaaaaa2", parent="taaaaaa1")
    ended(ledger, "taaaaaa3", parent="taaaaaa1")
    enqueued(ledger, "taaaaaa4", parent="taaaaaa2")
    assert set(ledger.children(["taaaaaa1"])) == {"taaaaaa2", "taaaaaa3"}
    assert set(ledger.children(["taaaaaa1", "taaaaaa2"])) == {"taaaaaa2", "taaaaaa3", "taaaaaa4"}
    assert list(ledger.children(["taaaaaa4"])) == []
    assert list(ledger.children([])) == []


def test_unsettled_is_every_task_whose_newest_attempt_has_not_ended(ledger: Ledger) -> None:
    """Queued, running, or tried again; nothing that has ended."""
    enqueued(ledger, "taaaaaa1")
    running(ledger, "taaaaaa2")
    ended(ledger, "taaaaaa3")
    ended(ledger, "taaaaaa4", evidence=vanished())
    ended(ledger, "taaaaaa5")
    ledger.add_attempt("taaaaaa5", attempt(2))
    assert {task.id for task in ledger.unsettled()} == {"taaaaaa1", "taaaaaa2", "taaaaaa5"}
    assert current(ledger, "taaaaaa2") in ledger.unsettled()


# --- history --------------------------------------------------------------------------------------


def test_history_tells_moves_evidence_and_notices_oldest_first(ledger: Ledger) -> None:
    """Two attempts, the first of them with evidence that came late."""
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


def test_history_is_of_one_task(ledger: Ledger) -> None:
    """And empty for one that is not there."""
    ended(ledger, "taaaaaa1")
    ended(ledger, "taaaaaa2")
    assert {notice.task for notice in ledger.history("taaaaaa1").notices} == {"taaaaaa1"}
    nothing = ledger.history("tzzzzzzz")
    assert (nothing.moves, nothing.evidence, nothing.notices) == ((), (), ())


# --- names that are no UTF-8 ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["caf\udce9", "\udcff\udcfe", "a\nb", "漢字 🎉", "'; --", "x" * 500])
def test_names_come_back_byte_for_byte(ledger: Ledger, name: str) -> None:
    """Whatever a file system or a shell allows, also what is no UTF-8."""
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


def test_names_that_differ_only_in_bytes_that_are_no_utf8_are_different(ledger: Ledger) -> None:
    """Neither is folded into a replacement character."""
    enqueued(ledger, "taaaaaa1", key="\udcff")
    enqueued(ledger, "taaaaaa2", key="\udcfe")
    enqueued(ledger, "taaaaaa3", key="\ufffd")
    assert len(ledger.tasks(Selection())) == 3


# --- times ----------------------------------------------------------------------------------------


def test_moments_and_spans_come_back_to_the_microsecond(ledger: Ledger) -> None:
    """A ledger compares numbers; nothing is rounded on the way."""
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

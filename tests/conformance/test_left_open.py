"""The contract of `LeftOpenPaths`: the paths that ended tasks left changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from outlive.domain.effects.left_open import LeftPath
from outlive.ledger.left_open_paths import LeftOpenPaths
from outlive.ledger.sqlite import SqliteLedger
from tests.conformance.steps import ended, running
from tests.unit.values import NOW, SECOND, attempt, exited

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ID, OTHER = "t7k2m9q4", "t7k2m9q5"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    """Open an empty ledger."""
    with SqliteLedger(str(tmp_path / "ledger.sqlite"), NOW) as opened:
        yield opened


def left(path: str, opened_at: int = 1) -> LeftPath:
    """Return the `LeftPath` of a path that a task left changed."""
    return LeftPath(
        path=path,
        name=path,
        scope="/p",
        is_stash=False,
        opened_at=opened_at,
        by="sed -i \udcff",
        found="f1",
        left="f2",
        must_be_same=False,
        written=5,
    )


def failed(ledger: SqliteLedger, id_: str = ID) -> None:
    """Record a task whose only attempt has failed."""
    ended(ledger, id_, exited(1))


def test_recorded_paths_are_found_by_path_and_by_directory(ledger: SqliteLedger) -> None:
    """`at` returns the recorded paths with the given names, and `below` those inside a directory.

    A name need not be UTF-8.
    """
    failed(ledger)
    paths = [left("/p/a"), left("/p/b/\udcff"), left("/pp")]
    LeftOpenPaths(ledger).record(ID, 1, paths)
    assert LeftOpenPaths(ledger).at(["/p/a", "/p/b"]) == [(ID, paths[0])]
    assert LeftOpenPaths(ledger).below(ID, "/p") == paths[:2]
    assert LeftOpenPaths(ledger).below(ID, "/p", after="/p/a") == paths[1:2]
    assert LeftOpenPaths(ledger).below(ID, "/", limit=1) == paths[:1]
    assert LeftOpenPaths(ledger).count(ID) == 3


def test_paths_are_not_recorded_unless_the_newest_attempt_has_ended(ledger: SqliteLedger) -> None:
    """`record` writes no path for an attempt that still runs or that has been retried."""
    running(ledger)
    LeftOpenPaths(ledger).record(ID, 1, [left("/p/a")])
    assert LeftOpenPaths(ledger).count(ID) == 0
    failed(ledger, OTHER)
    assert ledger.add_attempt(OTHER, attempt(number=2, created_at=NOW + SECOND))
    LeftOpenPaths(ledger).record(OTHER, 1, [left("/p/a")])
    assert LeftOpenPaths(ledger).count(OTHER) == 0


def test_failed_task_counts_as_known_when_its_paths_are_recorded(ledger: SqliteLedger) -> None:
    """A failed task counts as known once its paths were recorded, even if it left none.

    A successful task is not returned.
    """
    failed(ledger)
    failed(ledger, OTHER)
    ended(ledger, "t7k2m9q6")
    LeftOpenPaths(ledger).record(OTHER, 1, ())
    found = LeftOpenPaths(ledger).failed(NOW, NOW)
    assert [(each.task, each.is_known, each.has_left) for each in found] == [(ID, False, False), (OTHER, True, False)]
    LeftOpenPaths(ledger).record(ID, 1, [left("/p/a")])
    assert [each.has_left for each in LeftOpenPaths(ledger).failed(NOW, NOW)] == [True, False]


def test_path_belongs_to_the_task_that_began_to_change_it_last(ledger: SqliteLedger) -> None:
    """If two tasks left the same path changed, only the task that began to change it later has an entry."""
    failed(ledger)
    failed(ledger, OTHER)
    LeftOpenPaths(ledger).record(ID, 1, [left("/p/a", 1), left("/p/b", 1)])
    LeftOpenPaths(ledger).record(OTHER, 1, [left("/p/a", 2)])
    found = sorted((task, each.path) for task, each in LeftOpenPaths(ledger).at(["/p/a", "/p/b"]))
    assert found == [(ID, "/p/b"), (OTHER, "/p/a")]


def test_paths_are_forgotten_when_they_are_restored_or_old(ledger: SqliteLedger) -> None:
    """`restore` deletes only the given paths of a task.

    `forget` deletes all paths of tasks that ended before a given time.
    """
    failed(ledger)
    LeftOpenPaths(ledger).record(ID, 1, [left("/p/a"), left("/p/b"), left("/p/c")])
    LeftOpenPaths(ledger).restore(ID, [left("/p/a")])
    assert LeftOpenPaths(ledger).names() == [b"/p/b", b"/p/c"]
    LeftOpenPaths(ledger).forget(NOW)
    assert LeftOpenPaths(ledger).count(ID) == 2
    LeftOpenPaths(ledger).forget(NOW + 60 * SECOND)
    assert LeftOpenPaths(ledger).count(ID) == 0

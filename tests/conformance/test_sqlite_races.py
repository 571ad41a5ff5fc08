"""The ledger's file with many processes at once, and with a clock set back."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import apsw
import pytest

from outlive.domain.errors import Broken, OutliveError
from outlive.ledger import open_ledger
from outlive.ledger.sqlite import SqliteLedger
from tests.conformance.steps import current, enqueued, running, settlement
from tests.conformance.test_writing import race
from tests.unit.values import NOW, SECOND, exited

if TYPE_CHECKING:
    from pathlib import Path


def _open(path: Path) -> SqliteLedger:
    return SqliteLedger(str(path / "ledger.sqlite"), NOW)


@pytest.mark.parametrize("turn", ["1", "2", "3", "4", "5"])
def test_ledger_records_every_task_when_eight_processes_create_it(tmp_path: Path, turn: str) -> None:
    """If eight processes create a ledger at once, all their tasks are recorded, and no process fails."""
    place = tmp_path / turn
    place.mkdir()

    def launch(number: int, meet: object) -> str:
        meet()  # type: ignore[operator]
        with _open(place) as ledger:
            enqueued(ledger, f"taaaaaa{number}")
        return ""

    race(launch)
    with _open(place) as ledger:
        assert len(ledger.unsettled()) == 8


def test_quarantine_leaves_a_new_ledger_in_place(tmp_path: Path) -> None:
    """If two processes find the same damaged ledger, only the first moves it aside.

    The second process must not move aside the new ledger that the first has created.
    """
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"garbage" * 1000)
    with pytest.raises(Broken):
        _open(tmp_path)
    with _open(tmp_path) as ledger:
        enqueued(ledger)
    error = open_ledger.quarantine(str(path), NOW + SECOND, apsw.NotADBError("file is not a database"))
    assert "replaced by another process" in error.message
    with _open(tmp_path) as ledger:
        assert current(ledger).state == "queued"


def test_quarantine_asks_to_run_again_when_the_file_is_missing(tmp_path: Path) -> None:
    """If the damaged ledger has been moved aside already, the hint of the error is to run the command again.

    For a short time there is no file, until a process creates a new ledger.
    """
    error = open_ledger.quarantine(str(tmp_path / "ledger.sqlite"), NOW, apsw.NotADBError("file is not a database"))
    assert error.hint == "run the command again"


def test_history_orders_moves_by_recording_when_the_clock_is_set_back(tmp_path: Path) -> None:
    """The moves are in the order in which they were recorded, even if several moves have the same time."""
    with _open(tmp_path) as ledger:
        back = enqueued(ledger, "taaaaaa1")
        ledger.start(back.id, 1, NOW - timedelta(hours=1))
        ledger.settle(settlement(back, settled_at=NOW - timedelta(hours=2)))
        still = enqueued(ledger, "taaaaaa2")
        ledger.start(still.id, 1, NOW)
        ledger.settle(settlement(still, exited(1), settled_at=NOW))
        assert [move[2] for move in ledger.history(back.id).moves] == ["queued", "running", "succeeded"]
        assert [move[2] for move in ledger.history(still.id).moves] == ["queued", "running", "failed"]


def test_settle_records_no_evidence_of_a_missing_attempt(tmp_path: Path) -> None:
    """The settlement of attempt 9 of a task with one attempt writes nothing."""
    with _open(tmp_path) as ledger:
        task = enqueued(ledger)
        assert not ledger.settle(settlement(task, number=9))
        assert ledger.history(task.id).evidence == ()


def test_settle_accepts_a_detail_that_is_not_utf8(tmp_path: Path) -> None:
    """The detail of an ending is stored unchanged, because it may contain a file name with any bytes."""
    with _open(tmp_path) as ledger:
        task = running(ledger)
        assert ledger.settle(settlement(task, exited(1, detail="caf\udce9")))


def test_opening_raises_an_error_of_outlive_when_the_directory_is_missing(tmp_path: Path) -> None:
    """`SqliteLedger` raises `OutliveError` instead of an error of the operating system."""
    with pytest.raises(OutliveError):
        _open(tmp_path / "missing")

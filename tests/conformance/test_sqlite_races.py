"""The ledger's file under many first users at once, and under a clock that goes back."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import apsw
import pytest

from outlive.domain.errors import Broken, OutliveError
from outlive.ledger import opening
from outlive.ledger.sqlite import SqliteLedger
from tests.conformance.steps import current, enqueued, running, settlement
from tests.conformance.test_writing import race
from tests.unit.values import NOW, SECOND, exited

if TYPE_CHECKING:
    from pathlib import Path


def _open(path: Path) -> SqliteLedger:
    return SqliteLedger(str(path / "ledger.sqlite"), NOW)


@pytest.mark.parametrize("turn", ["1", "2", "3", "4", "5"])
def test_first_launches_at_the_same_moment_all_succeed(tmp_path: Path, turn: str) -> None:
    """Eight processes create the ledger together; none is told that it is locked."""
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


def test_a_latecomer_does_not_move_the_new_ledger_aside(tmp_path: Path) -> None:
    """A second process met the same garbage, and comes to the quarantine when a new one has begun."""
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"garbage" * 1000)
    with pytest.raises(Broken):
        _open(tmp_path)
    with _open(tmp_path) as ledger:
        enqueued(ledger)
    error = opening.quarantine(str(path), NOW + SECOND, apsw.NotADBError("file is not a database"))
    assert "replaced by another process" in error.message
    with _open(tmp_path) as ledger:
        assert current(ledger).state == "queued"


def test_a_latecomer_that_finds_nothing_says_to_try_again(tmp_path: Path) -> None:
    """Between the move and the new ledger there is no file at all."""
    error = opening.quarantine(str(tmp_path / "ledger.sqlite"), NOW, apsw.NotADBError("file is not a database"))
    assert error.hint == "run the command again"


def test_moves_are_told_in_their_order_whatever_the_clock_says(tmp_path: Path) -> None:
    """A clock that is set back, or that stands still, does not reorder a life."""
    with _open(tmp_path) as ledger:
        back = enqueued(ledger, "taaaaaa1")
        ledger.start(back.id, 1, NOW - timedelta(hours=1))
        ledger.settle(settlement(back, settled_at=NOW - timedelta(hours=2)))
        still = enqueued(ledger, "taaaaaa2")
        ledger.start(still.id, 1, NOW)
        ledger.settle(settlement(still, exited(1), settled_at=NOW))
        assert [move[2] for move in ledger.history(back.id).moves] == ["queued", "running", "succeeded"]
        assert [move[2] for move in ledger.history(still.id).moves] == ["queued", "running", "failed"]


def test_evidence_of_an_attempt_that_is_not_there_is_not_kept(tmp_path: Path) -> None:
    """There is nothing that it would be evidence of."""
    with _open(tmp_path) as ledger:
        task = enqueued(ledger)
        assert not ledger.settle(settlement(task, number=9))
        assert ledger.history(task.id).evidence == ()


def test_a_detail_that_is_not_utf8_does_not_prevent_an_ending(tmp_path: Path) -> None:
    """A name in the sentence may have any bytes."""
    with _open(tmp_path) as ledger:
        task = running(ledger)
        assert ledger.settle(settlement(task, exited(1, detail="caf\udce9")))


def test_a_missing_directory_is_a_clear_error(tmp_path: Path) -> None:
    """Not a traceback of the file system's."""
    with pytest.raises(OutliveError):
        _open(tmp_path / "missing")

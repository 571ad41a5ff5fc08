"""A ledger that rests: kept open for when somebody is in a hurry, and used only while it is still the ledger."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, cast

import apsw
import pytest

from outlive.ledger import forking
from outlive.ledger.opening import SCHEMA_VERSION
from outlive.ledger.resting import RestingLedger
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from tests.conformance.steps import current, running, settlement
from tests.unit.values import NOW, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Name a ledger that others have written before; its log is there."""
    path = str(tmp_path / "ledger.sqlite")
    with SqliteLedger(path, NOW):
        pass
    return path


def _moved_aside(path: str) -> None:
    for suffix in ("", "-wal", "-shm"):
        os.rename(path + suffix, path + ".aside" + suffix)


def _replaced(path: str) -> None:
    _moved_aside(path)
    with SqliteLedger(path + ".new", NOW):
        pass
    for suffix in ("", "-wal", "-shm"):
        os.rename(path + ".new" + suffix, path + suffix)


def _without_its_log(path: str) -> None:
    Path(path + "-wal").unlink()


def _without_its_index(path: str) -> None:
    Path(path + "-shm").unlink()


def _upgraded(path: str) -> None:
    connection = apsw.Connection(path)
    connection.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    connection.close()


def _overwritten(path: str) -> None:
    connection = apsw.Connection(path)
    assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").get == (0, 0, 0)
    connection.close()
    Path(path).write_bytes(b"not a database" * 1000)


@pytest.mark.parametrize(
    "meanwhile", [_moved_aside, _replaced, _without_its_log, _without_its_index, _upgraded, _overwritten]
)
def test_what_is_not_our_ledger_any_more_is_not_used_again(path: str, meanwhile: Callable[[str], None]) -> None:
    """What would be written there nobody would read, or not as it was meant."""
    ledger = SqliteLedger(path, NOW)
    ledger.get_ready_to_settle()
    ledger.rest()
    meanwhile(path)
    assert not ledger.resume()
    assert not ledger.resume()


def test_what_others_have_written_meanwhile_is_seen(path: str) -> None:
    """It rests on nothing old."""
    ledger = SqliteLedger(path, NOW)
    ledger.get_ready_to_settle()
    ledger.rest()
    with SqliteLedger(path, NOW) as other:
        running(other)
    assert ledger.resume()
    assert current(ledger).state == "running"
    ledger.close()


def test_whoever_is_ready_to_settle_compiles_nothing_any_more(path: str) -> None:
    """Getting ready executes nothing, and leaves nothing to be done but that."""
    with SqliteLedger(path, NOW) as ledger:
        asked = running(ledger)
    with SqliteLedger(path, NOW) as ledger:
        ledger.get_ready_to_settle()
        assert current(ledger).state == "running"
        assert not ledger.db.in_transaction
        before = ledger.db.cache_stats()["misses"]
        assert ledger.settle(settlement(asked))
        assert ledger.db.cache_stats()["misses"] == before
        assert current(ledger).state == "succeeded"


def test_who_rests_keeps_nobody_from_writing_or_folding(path: str) -> None:
    """A keeper may rest for days, or be stopped while it does."""
    ledger = SqliteLedger(path, NOW)
    ledger.get_ready_to_settle()
    ledger.rest()
    other = apsw.Connection(path)
    other.execute("BEGIN EXCLUSIVE; CREATE TABLE t (x); INSERT INTO t VALUES (1); DROP TABLE t; COMMIT")
    assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").get == (0, 0, 0)
    other.close()
    assert ledger.resume()
    ledger.close()


def test_a_long_log_is_folded_before_a_rest_and_patience_stays(path: str) -> None:
    """Who launches for hours never closes it; and folding is hasty, while writing waits for others."""
    resting = RestingLedger(path)
    for number in range(60):
        with resting.use(NOW) as ledger:
            running(ledger, f"taaaa{number:03}")
    assert os.path.getsize(path + "-wal") < 200 * 4096
    other = apsw.Connection(path)
    other.execute("BEGIN IMMEDIATE")
    Timer(0.2, lambda: other.execute("ROLLBACK")).start()
    with resting.use(NOW) as ledger, ledger.write():
        pass
    resting.close()


def test_it_is_opened_once_and_tells_the_time_of_each_use(path: str) -> None:
    """A session that launches a minute later is heard of a minute later."""
    resting = RestingLedger(path)
    with resting.use(NOW) as first:
        pass
    with resting.use(NOW + 60 * SECOND) as second:
        assert second is first
        running(second, session="s-1")
        assert [each.created_at for each in Sessions(second).newest(2)] == [NOW + 60 * SECOND]
    resting.close()


def test_after_an_error_it_is_opened_anew(path: str) -> None:
    """Whatever state it was left in, nobody else finds it so."""
    resting = RestingLedger(path)
    with pytest.raises(ZeroDivisionError), resting.use(NOW) as first:
        raise ZeroDivisionError
    with resting.use(NOW) as second:
        assert second is not first
    resting.close()


def test_of_those_that_threads_have_opened_at_once_one_is_kept(path: str) -> None:
    """Whoever launches from many threads for hours has no more files open than who does it from one."""
    before = len(forking._resting)
    resting = RestingLedger(path)
    first, second = resting.take(NOW), resting.take(NOW)
    resting.put_back(first)
    resting.put_back(second)
    assert forking._resting[before:] == [second]
    resting.put_back(resting.take(NOW))
    assert forking._resting[before:] == [second]
    del resting
    assert len(forking._resting) == before


class _Interrupted:
    """In the place of a connection that is just being closed when somebody presses a key."""

    def close(self) -> None:
        raise KeyboardInterrupt


def _interrupted_when_closed(ledger: SqliteLedger) -> None:
    ledger.db.close()
    ledger.db = cast("apsw.Connection", _Interrupted())
    ledger.close()


def _interrupted_when_resumed(ledger: SqliteLedger) -> None:
    def press(*_: object) -> bool:
        raise KeyboardInterrupt

    ledger.rest()
    ledger.db.exec_trace = press
    ledger.resume()


@pytest.mark.parametrize("interrupted", [_interrupted_when_closed, _interrupted_when_resumed])
def test_who_is_interrupted_keeps_no_other_thread_waiting(
    path: str, interrupted: Callable[[SqliteLedger], None]
) -> None:
    """A person at a prompt interrupts one thread; the others, and whoever forks, would wait for it for ever."""
    with pytest.raises(KeyboardInterrupt):
        interrupted(SqliteLedger(path, NOW))
    with ThreadPoolExecutor(1) as another:
        assert another.submit(forking._gate.acquire, timeout=10).result()
        another.submit(forking._gate.release).result()

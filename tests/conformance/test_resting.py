"""The contract of a ledger that stays open between two uses.

A ledger that is open and not in use is called resting. A resting ledger is used again only if its file is unchanged.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, cast

import apsw
import pytest

from outlive.domain.errors import Broken, NewerLedger
from outlive.ledger import fork_safety, open_ledger
from outlive.ledger.connection import hurry, keep_open, stop_hurrying
from outlive.ledger.kept_open import KeptOpenLedger
from outlive.ledger.open_ledger import SCHEMA_VERSION
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from tests.conformance.steps import current, running, settlement
from tests.unit.values import NOW, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return the path of a ledger that another connection has created."""
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
def test_resume_returns_false_when_the_ledger_was_replaced(path: str, meanwhile: Callable[[str], None]) -> None:
    """A resting ledger is not used again after its file was moved, replaced, upgraded or damaged."""
    ledger = SqliteLedger(path, NOW)
    ledger.get_ready_to_settle()
    ledger.rest()
    meanwhile(path)
    assert not ledger.resume()
    assert not ledger.resume()


def test_resumed_ledger_sees_the_writes_of_other_processes(path: str) -> None:
    """A ledger that is used again shows a task that another connection recorded while it was not in use."""
    ledger = SqliteLedger(path, NOW)
    ledger.get_ready_to_settle()
    ledger.rest()
    with SqliteLedger(path, NOW) as other:
        running(other)
    assert ledger.resume()
    assert current(ledger).state == "running"
    ledger.close()


def test_settle_compiles_no_statement_after_getting_ready(path: str) -> None:
    """After `get_ready_to_settle`, a call of `settle` compiles no SQL statement.

    `get_ready_to_settle` changes no data.
    """
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


def test_resting_ledger_blocks_no_writer_and_no_checkpoint(path: str) -> None:
    """A ledger that is open and not in use holds no lock, so it blocks neither a writer nor a checkpoint.

    A keeper may keep such a ledger open for days.
    """
    ledger = SqliteLedger(path, NOW)
    ledger.get_ready_to_settle()
    ledger.rest()
    other = apsw.Connection(path)
    other.execute("BEGIN EXCLUSIVE; CREATE TABLE t (x); INSERT INTO t VALUES (1); DROP TABLE t; COMMIT")
    assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").get == (0, 0, 0)
    other.close()
    assert ledger.resume()
    ledger.close()


def test_long_log_is_checkpointed_before_a_rest(path: str) -> None:
    """The write-ahead log stays short over sixty uses, because the ledger copies it into the file when a use ends.

    A write after this still waits for other writers.
    """
    resting = KeptOpenLedger(path)
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


def test_kept_ledger_is_opened_once_and_takes_the_time_of_each_use(path: str) -> None:
    """A second use of a kept ledger gets the same connection. A new session is recorded with the time of this use."""
    resting = KeptOpenLedger(path)
    with resting.use(NOW) as first:
        pass
    with resting.use(NOW + 60 * SECOND) as second:
        assert second is first
        running(second, session="s-1")
        assert [each.created_at for each in Sessions(second).newest(2)] == [NOW + 60 * SECOND]
    resting.close()


def test_kept_ledger_is_opened_anew_after_an_error(path: str) -> None:
    """If a use ended with an error, the next use opens a new connection. The old one may be in an unknown state."""
    resting = KeptOpenLedger(path)
    with pytest.raises(ZeroDivisionError), resting.use(NOW) as first:
        raise ZeroDivisionError
    with resting.use(NOW) as second:
        assert second is not first
    resting.close()


def test_one_ledger_is_kept_when_threads_open_several(path: str) -> None:
    """If threads open several ledgers, only one of them stays open afterwards."""
    before = len(fork_safety._resting)
    resting = KeptOpenLedger(path)
    first, second = resting.take(NOW), resting.take(NOW)
    resting.put_back(first)
    resting.put_back(second)
    assert fork_safety._resting[before:] == [second]
    resting.put_back(resting.take(NOW))
    assert fork_safety._resting[before:] == [second]
    del resting
    assert len(fork_safety._resting) == before


class _Interrupted:
    """A connection whose `close` is interrupted by Ctrl-C."""

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
def test_ledger_is_released_when_closing_or_resuming_is_interrupted(
    path: str, interrupted: Callable[[SqliteLedger], None]
) -> None:
    """If closing or resuming a ledger is interrupted, its lock is released.

    Otherwise, other threads and forks would wait forever for the interrupted thread.
    """
    with pytest.raises(KeyboardInterrupt):
        interrupted(SqliteLedger(path, NOW))
    with ThreadPoolExecutor(1) as another:
        assert another.submit(fork_safety._gate.acquire, timeout=10).result()
        another.submit(fork_safety._gate.release).result()


@pytest.fixture
def hurried(path: str) -> Iterator[str]:
    """Return the path of a ledger, after a call of `hurry`.

    After `hurry`, all uses of the ledger in this process share one connection.
    """
    hurry(10)
    yield path
    stop_hurrying()


def test_shared_connection_serves_all_uses(hurried: str) -> None:
    """All uses in the process share one connection, both consecutive uses and nested ones."""
    with SqliteLedger(hurried, NOW) as first:
        running(first)
        with SqliteLedger(hurried, NOW + SECOND) as inner:
            assert inner.db is first.db
            assert current(inner).state == "running"
        assert current(first).state == "running"
    with SqliteLedger(hurried, NOW) as second:
        assert second.db is first.db
    stop_hurrying()
    with SqliteLedger(hurried, NOW) as third:
        assert third.db is not first.db


def test_process_that_keeps_the_ledger_open_waits_for_locks_as_usual(path: str) -> None:
    """`keep_open` lets all uses share one connection, as `hurry` does.

    But only `hurry` shortens the waits for locks.
    """
    keep_open()
    try:
        with SqliteLedger(path, NOW) as first:
            running(first)
        with SqliteLedger(path, NOW) as second:
            assert second.db is first.db
        assert open_ledger._impatient_after is None
    finally:
        stop_hurrying()


@pytest.mark.parametrize("meanwhile", [_moved_aside, _replaced, _without_its_log, _without_its_index])
def test_shared_connection_is_reopened_when_the_ledger_is_replaced(
    hurried: str, meanwhile: Callable[[str], None]
) -> None:
    """After the file was moved or replaced, the next use opens a new connection."""
    with SqliteLedger(hurried, NOW) as first:
        pass
    meanwhile(hurried)
    with SqliteLedger(hurried, NOW) as second:
        assert second.db is not first.db


@pytest.mark.parametrize(("meanwhile", "error"), [(_upgraded, NewerLedger), (_overwritten, Broken)])
def test_shared_connection_refuses_a_ledger_that_is_newer_or_damaged(
    hurried: str, meanwhile: Callable[[str], None], error: type[Exception]
) -> None:
    """A newer or damaged ledger raises the same error on a shared connection as on a new one."""
    with SqliteLedger(hurried, NOW):
        pass
    meanwhile(hurried)
    with pytest.raises(error):
        SqliteLedger(hurried, NOW)


def test_shared_connection_is_reopened_after_an_error(hurried: str) -> None:
    """If a use ended with an error, the shared connection is closed. It may be in an unknown state."""
    with SqliteLedger(hurried, NOW) as outer:
        with pytest.raises(ZeroDivisionError), SqliteLedger(hurried, NOW):
            raise ZeroDivisionError
        running(outer)
    with SqliteLedger(hurried, NOW) as later:
        assert later.db is not outer.db
        assert current(later).state == "running"


def test_shared_connection_writes_durably_after_a_hasty_use(hurried: str) -> None:
    """After a use with `be_hasty`, which may lose its writes in a power failure, later uses write durably again."""
    with SqliteLedger(hurried, NOW) as hasty:
        hasty.be_hasty()
    with SqliteLedger(hurried, NOW) as later:
        assert later.db is hasty.db
        assert later.db.pragma("synchronous") == 2


def test_fork_closes_the_shared_connection(hurried: str) -> None:
    """After a fork, the child opens the ledger for each use, and the parent opens a new shared connection."""
    with SqliteLedger(hurried, NOW) as before:
        pass
    child = os.fork()
    if child == 0:
        is_open = any(os.readlink(f"/proc/self/fd/{fd}") == hurried for fd in _open_fds())
        with SqliteLedger(hurried, NOW) as first:
            pass
        with SqliteLedger(hurried, NOW) as second:
            shares = second.db is first.db
        os._exit(int(is_open or shares))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with SqliteLedger(hurried, NOW) as after:
        assert after.db is not before.db


def _open_fds() -> list[str]:
    """Return the open file descriptors of this process, without the one that is used to list them."""
    return [fd for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")]

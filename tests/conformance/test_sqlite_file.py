"""The file of the ledger: private, durable, recognised, and never overwritten when broken."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from outlive.domain.errors import Broken, NewerLedger, Unavailable
from outlive.ledger import opening
from outlive.ledger.contract import Selection
from outlive.ledger.opening import SCHEMA_VERSION
from outlive.ledger.sqlite import SqliteLedger
from tests.conformance.frozen import schema_1
from tests.conformance.steps import current, ended, enqueued, read_result
from tests.unit.values import NOW

if TYPE_CHECKING:
    from collections.abc import Iterator

FROZEN = Path(__file__).parent / "frozen"
MIGRATIONS = Path(opening.__file__).parent / "migrations"


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Name a file that is not there yet."""
    return str(tmp_path / "ledger.sqlite")


@pytest.fixture
def open_to_all() -> Iterator[None]:
    """Let every file be created as wide as its creator allows."""
    old = os.umask(0)
    yield
    os.umask(old)


def opened(path: str) -> SqliteLedger:
    """The ledger in a file."""
    return SqliteLedger(path, NOW)


def content(path: str) -> bytes:
    """What is in a file."""
    with open(path, "rb") as file:
        return file.read()


def folded(path: str) -> None:
    """Fold the log into the file, so that the file is all there is."""
    connection = apsw.Connection(path)
    # Not `wal_checkpoint()`: on a connection that has read nothing yet it does nothing, silently.
    assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").get == (0, 0, 0)
    connection.close()


def put_aside(path: str) -> list[str]:
    """The broken ledgers beside this one."""
    directory, name = os.path.split(path)
    return [
        os.path.join(directory, found)
        for found in sorted(os.listdir(directory))
        if found.startswith(f"{name}.broken-") and not found.endswith(("-wal", "-shm"))
    ]


# --- as it is opened ------------------------------------------------------------------------------


@pytest.mark.usefixtures("open_to_all")
def test_the_file_its_log_and_its_index_are_private(path: str) -> None:
    """Whatever the umask: they hold command lines."""
    with opened(path) as ledger:
        enqueued(ledger)
        for suffix in ("", "-wal", "-shm"):
            assert stat.S_IMODE(os.stat(path + suffix).st_mode) == 0o600, suffix


def test_a_commit_is_on_the_disk_before_it_is_said_to_be(path: str) -> None:
    """A log that is synced with every commit, and foreign keys that are held."""
    with opened(path) as ledger:
        assert ledger.db.pragma("synchronous") == 2
        assert ledger.db.pragma("journal_mode") == "wal"
        assert ledger.db.pragma("foreign_keys") == 1


def test_a_linked_ledger_is_refused(path: str, tmp_path: Path) -> None:
    """Nobody can make us write into another file by putting a link in its place."""
    (tmp_path / "target").touch()
    os.symlink(tmp_path / "target", path)
    with pytest.raises(Unavailable):
        opened(path)
    assert content(str(tmp_path / "target")) == b""


def test_a_ledger_in_a_missing_directory_is_not_there(tmp_path: Path) -> None:
    """The directory is made by whoever checks it, not in passing."""
    with pytest.raises((Unavailable, FileNotFoundError)):
        opened(str(tmp_path / "missing" / "ledger.sqlite"))


def test_the_log_does_not_grow_for_ever(path: str) -> None:
    """Short-lived openers, none of which closes as the last: still it is folded in time."""
    longest = 0
    for number in range(120):
        with opened(path) as ledger:
            enqueued(ledger, f"task{number:04}", description="x" * 2000)
        longest = max(longest, os.stat(path + "-wal").st_size)
    assert longest < 2 << 20
    with opened(path) as ledger:
        assert len(ledger.tasks(Selection())) == 120
        assert ledger.check_integrity() == []


# --- newer ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [SCHEMA_VERSION + 1, 99])
def test_a_newer_ledger_is_left_untouched(path: str, version: int) -> None:
    """It says so, and not a byte of it changes."""
    with opened(path) as ledger:
        ended(ledger)
    connection = apsw.Connection(path)
    connection.pragma("user_version", version)
    connection.close()
    folded(path)
    before = content(path)
    with pytest.raises(NewerLedger, match=f"schema {version}"):
        opened(path)
    assert content(path) == before
    assert put_aside(path) == []


# --- broken ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "garbage",
    [b"xy", b"not a database" * 1000, bytes(range(256)) * 64, b"SQLite format 2\0" + bytes(4080)],
    ids=["tiny", "text", "binary", "other"],
)
def test_garbage_is_moved_aside_byte_for_byte_and_a_new_ledger_begins(path: str, garbage: bytes) -> None:
    """Nothing ever overwrites what could still be read by a person."""
    Path(path).write_bytes(garbage)
    with pytest.raises(Broken) as error:
        opened(path)
    (aside,) = put_aside(path)
    assert aside in error.value.message
    assert content(aside) == garbage
    with opened(path) as ledger:
        ended(ledger)
        assert current(ledger).state == "succeeded"
    assert content(aside) == garbage


def damage(path: str) -> bytes:
    """Make a ledger that opens, and cannot be read any further; its content."""
    with opened(path) as ledger:
        for number in range(40):
            ended(ledger, f"task{number:04}", description="x" * 300)
        ((page,),) = ledger.select("SELECT rootpage FROM sqlite_schema WHERE name = 'task'")
    folded(path)
    with open(path, "r+b") as file:
        file.seek((int(str(page)) - 1) * 4096)
        file.write(b"\xa5" * 4096)
    return content(path)


def test_a_damaged_ledger_is_moved_aside_whole(path: str) -> None:
    """Damage that only a later read meets: the same, with the log beside the file."""
    damaged = damage(path)
    ledger = opened(path)
    with pytest.raises(Broken, match="is damaged"):
        ledger.tasks(Selection())
    ledger.close()
    (aside,) = put_aside(path)
    assert content(aside) == damaged
    with opened(path) as ledger:
        assert list(ledger.tasks(Selection())) == []
        ended(ledger)


def test_damage_that_is_read_in_the_middle_of_a_write_is_told_as_well(path: str) -> None:
    """Otherwise the next reader would find an empty ledger, and nobody would know why."""
    damaged = damage(path)
    ledger = opened(path)
    with pytest.raises(Broken, match="it was moved to"), ledger, ledger.write():
        ledger.tasks(Selection())
    (aside,) = put_aside(path)
    assert content(aside) == damaged


def test_broken_ledgers_do_not_overwrite_each_other(path: str, tmp_path: Path) -> None:
    """Two on one day are two files, whoever found them."""
    for number in (1, 2):
        Path(path).write_bytes(b"broken %d" % number)
        with pytest.raises(Broken):
            SqliteLedger(path, NOW.replace(second=number))
    assert [content(aside) for aside in put_aside(path)] == [b"broken 1", b"broken 2"]
    assert not (tmp_path / "ledger.sqlite").exists()


# --- older ----------------------------------------------------------------------------------------


@pytest.fixture
def frozen(path: str) -> str:
    """Copy the ledger that the first release wrote."""
    shutil.copyfile(FROZEN / "schema-1.sqlite", path)
    return path


def test_a_frozen_ledger_is_read_as_it_was_written(frozen: str) -> None:
    """Every task, every attempt, every word of history, for ever."""
    with opened(frozen) as ledger:
        # Lineages are newer than this ledger: each session has become one of its own.
        assert tuple(task.but(lineage=None) for task in reversed(ledger.tasks(Selection()))) == schema_1.TASKS
        lineages = {task.launch.session: task.lineage for task in ledger.tasks(Selection())}
        assert lineages[None] is None
        assert len(set(lineages.values())) == len(lineages)
        assert {id_: ledger.history(id_) for id_ in schema_1.HISTORIES} == schema_1.HISTORIES
        assert {task.id for task in ledger.unsettled()} == {"tqueued2", "trunning", "tlost222"}
        assert ledger.check_integrity() == []


def test_a_frozen_ledger_holds_every_state() -> None:
    """Nothing that can be recorded is missing from it."""
    states = {each.state for task in schema_1.TASKS for each in task.attempts}
    assert states == {"queued", "running", "succeeded", "failed", "cancelled", "timed_out", "lost"}


def test_a_frozen_ledger_goes_on_as_a_new_one_would(frozen: str, tmp_path: Path) -> None:
    """After opening, its schema is the one that a new ledger has, and it takes new tasks."""
    with opened(frozen) as ledger:
        ended(ledger)
        assert read_result(ledger, "tfailed2", "s-1") == 1
        assert current(ledger).state == "succeeded"
    with opened(str(tmp_path / "new.sqlite")):
        pass
    schemas = []
    for file in (frozen, str(tmp_path / "new.sqlite")):
        connection = apsw.Connection(file)
        rows = connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY 1, 2")
        schemas.append((connection.pragma("user_version"), rows.fetchall()))
        connection.close()
    assert schemas[0] == schemas[1]


def test_the_frozen_ledger_is_one_file() -> None:
    """Complete without a log, and of schema 1."""
    assert sorted(each.name for each in FROZEN.glob("*.sqlite*")) == ["schema-1.sqlite"]
    header = (FROZEN / "schema-1.sqlite").read_bytes()[:100]
    assert header.startswith(b"SQLite format 3\0")
    assert int.from_bytes(header[60:64], "big") == 1


def test_what_waits_to_be_delivered_survives_a_table_that_is_made_anew(path: str) -> None:
    """Notices of a ledger of schema 4, and what refers to them."""
    old = apsw.Connection(path)
    for number in range(1, 5):
        (migration,) = MIGRATIONS.glob(f"{number:04}_*.sql")
        old.execute(migration.read_text())
    old.pragma("user_version", 4)
    old.execute(
        "INSERT INTO task (id, argv, command, cwd, project, host, created_at, mode, engine, max_output, notify, retain)"
        " VALUES ('t7k2m9q4', '[]', 'true', '/', '/', 'h', 1, 'background', 'local', 1, 'end', 1);"
        "INSERT INTO notice (id, task, attempt, kind, created_at, tries) VALUES ('n1', 't7k2m9q4', 1, 'ended', 5, 2);"
        "INSERT INTO sink (name, kind, target, policy, created_at) VALUES ('s', 'run', 'true', 'all', 1);"
        "INSERT INTO delivery (notice, sink, state, tries) VALUES ('n1', 's', 'pending', 3)"
    )
    old.close()
    with opened(path) as ledger:
        assert ledger.owes_sinks()
        history = ledger.history("t7k2m9q4")
    assert [(each.id, each.kind, each.tries) for each in history.notices] == [("n1", "ended", 2)]
    assert [(each.notice, each.sink, each.tries) for each in history.deliveries] == [("n1", "s", 3)]

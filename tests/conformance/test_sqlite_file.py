"""The ledger's file: its mode, durability and schema, and the handling of a damaged file."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from outlive.domain.errors import Broken, NewerLedger, Unavailable
from outlive.ledger import open_ledger
from outlive.ledger.contract import Selection
from outlive.ledger.open_ledger import SCHEMA_VERSION
from outlive.ledger.sqlite import SqliteLedger
from tests.conformance.frozen import schema_1
from tests.conformance.steps import current, ended, enqueued, read_result
from tests.unit.values import NOW

if TYPE_CHECKING:
    from collections.abc import Iterator

    from outlive.ledger.rows import Cell, Row

FROZEN = Path(__file__).parent / "frozen"
MIGRATIONS = Path(open_ledger.__file__).parent / "migrations"


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return the path of a file that does not exist yet."""
    return str(tmp_path / "ledger.sqlite")


@pytest.fixture
def open_to_all() -> Iterator[None]:
    """Set the umask to 0, so that the umask removes no mode bit from a new file."""
    old = os.umask(0)
    yield
    os.umask(old)


def opened(path: str) -> SqliteLedger:
    """Return the ledger opened from a file."""
    return SqliteLedger(path, NOW)


def content(path: str) -> bytes:
    """Return the content of a file."""
    with open(path, "rb") as file:
        return file.read()


def folded(path: str) -> None:
    """Copy the write-ahead log into the database file, so that the file alone is complete."""
    connection = apsw.Connection(path)
    # `wal_checkpoint()` does nothing on a connection that has not read yet, and reports no error.
    assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").get == (0, 0, 0)
    connection.close()


def put_aside(path: str) -> list[str]:
    """Return the paths of the damaged ledgers that were moved aside."""
    directory, name = os.path.split(path)
    return [
        os.path.join(directory, found)
        for found in sorted(os.listdir(directory))
        if found.startswith(f"{name}.broken-") and not found.endswith(("-wal", "-shm"))
    ]


# --- opening --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("open_to_all")
def test_ledger_file_log_and_index_have_mode_0600(path: str) -> None:
    """The database file, its log and its index have mode 0600 for any umask, because they contain command lines."""
    with opened(path) as ledger:
        enqueued(ledger)
        for suffix in ("", "-wal", "-shm"):
            assert stat.S_IMODE(os.stat(path + suffix).st_mode) == 0o600, suffix


def test_ledger_syncs_every_commit_and_checks_foreign_keys(path: str) -> None:
    """The connection uses a write-ahead log, synchronous=FULL and foreign keys."""
    with opened(path) as ledger:
        assert ledger.db.pragma("synchronous") == 2
        assert ledger.db.pragma("journal_mode") == "wal"
        assert ledger.db.pragma("foreign_keys") == 1


def test_opening_raises_unavailable_when_the_path_is_a_symbolic_link(path: str, tmp_path: Path) -> None:
    """If the ledger's path is a symbolic link, opening it raises `Unavailable`, and no other file is written."""
    (tmp_path / "target").touch()
    os.symlink(tmp_path / "target", path)
    with pytest.raises(Unavailable):
        opened(path)
    assert content(str(tmp_path / "target")) == b""


def test_opening_fails_when_the_directory_is_missing(tmp_path: Path) -> None:
    """If the directory is missing, opening the ledger raises an error and does not create the directory."""
    with pytest.raises((Unavailable, FileNotFoundError)):
        opened(str(tmp_path / "missing" / "ledger.sqlite"))


def test_log_stays_short_over_many_short_connections(path: str) -> None:
    """The write-ahead log stays short over many connections.

    Outlive empties it, because SQLite does not do so at closing.
    """
    longest = 0
    for number in range(120):
        with opened(path) as ledger:
            enqueued(ledger, f"task{number:04}", description="x" * 2000)
        longest = max(longest, os.stat(path + "-wal").st_size)
    assert longest < 2 << 20
    with opened(path) as ledger:
        assert len(ledger.tasks(Selection())) == 120
        assert ledger.check_integrity() == []


# --- a ledger of a newer version ------------------------------------------------------------------


@pytest.mark.parametrize("version", [SCHEMA_VERSION + 1, 99])
def test_ledger_of_a_newer_schema_is_left_unchanged(path: str, version: int) -> None:
    """Opening a ledger with a newer schema raises `NewerLedger`, and changes no byte of the file."""
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


# --- a damaged ledger -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "garbage",
    [b"xy", b"not a database" * 1000, bytes(range(256)) * 64, b"SQLite format 2\0" + bytes(4080)],
    ids=["tiny", "text", "binary", "other"],
)
def test_file_that_is_no_database_is_moved_aside_unchanged(path: str, garbage: bytes) -> None:
    """Opening a file that is no database moves it aside and raises `Broken` with the new path.

    The next opening creates a new ledger.
    """
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
    """Create a ledger that can be opened but not read, and return the file's content."""
    with opened(path) as ledger:
        for number in range(40):
            ended(ledger, f"task{number:04}", description="x" * 300)
        ((page,),) = ledger.select("SELECT rootpage FROM sqlite_schema WHERE name = 'task'")
    folded(path)
    with open(path, "r+b") as file:
        file.seek((int(str(page)) - 1) * 4096)
        file.write(b"\xa5" * 4096)
    return content(path)


def test_ledger_is_moved_aside_when_a_read_finds_damage(path: str) -> None:
    """If a read finds damage, the whole ledger is moved aside, and a new ledger can be used afterwards."""
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


def test_ledger_is_moved_aside_when_damage_is_found_inside_a_transaction(path: str) -> None:
    """If a transaction finds damage, the ledger is moved aside, and the error names the new path.

    Without the path, the next reader would find an empty ledger and no explanation.
    """
    damaged = damage(path)
    ledger = opened(path)
    with pytest.raises(Broken, match="it was moved to"), ledger, ledger.write():
        ledger.tasks(Selection())
    (aside,) = put_aside(path)
    assert content(aside) == damaged


def without(path: str, statement: str) -> None:
    """Delete rows of one table, as if the database file were older than its write-ahead log."""
    connection = apsw.Connection(path)
    connection.execute(f"PRAGMA foreign_keys = 0; {statement}")
    connection.close()


@pytest.mark.parametrize("statement", ["DELETE FROM attempt", "DELETE FROM attempt WHERE number = 2"])
def test_ledger_is_moved_aside_when_a_task_lacks_attempts(path: str, statement: str) -> None:
    """A ledger in which a task has no attempts is moved aside.

    Such rows are missing if the file is older than its log.
    """
    with opened(path) as ledger:
        launch = ended(ledger)
        assert ledger.add_attempt(launch.id, current(ledger).current.but(number=2))
    without(path, statement)
    with opened(path) as ledger, pytest.raises(Broken, match=r"is damaged .* it was moved to"):
        ledger.tasks(Selection())
    assert len(put_aside(path)) == 1
    with opened(path) as ledger:
        assert list(ledger.tasks(Selection())) == []


def test_ledger_is_moved_aside_when_an_attempt_lacks_its_task(path: str) -> None:
    """A ledger in which an attempt has no task is moved aside.

    Such a row would make every rebuilding of the task fail.
    """
    with opened(path) as ledger:
        launch = ended(ledger)
    without(path, "DELETE FROM task")
    with opened(path) as ledger, pytest.raises(Broken, match=r"is damaged .* it was moved to"):
        enqueued(ledger, launch.id)
    assert len(put_aside(path)) == 1


def test_task_deleted_while_it_is_read_is_no_damage(path: str) -> None:
    """A task that another process deletes between two reads does not make the ledger count as damaged."""
    with opened(path) as ledger, opened(path) as other:
        kept, gone = enqueued(ledger, "tkept222"), enqueued(ledger, "tgone222")
        select = ledger.select

        def delete_meanwhile(query: str, cells: tuple[Cell, ...] = ()) -> list[Row]:
            if cells == (gone.id,):
                other.db.execute("DELETE FROM task WHERE id = ?", cells)
            return select(query, cells)

        ledger.select = delete_meanwhile  # type: ignore[method-assign]
        assert [task.id for task in ledger.tasks(Selection())] == [kept.id]
    assert put_aside(path) == []


def test_damaged_ledgers_are_moved_to_different_names(path: str, tmp_path: Path) -> None:
    """Two ledgers that are found damaged on the same day are both kept."""
    for number in (1, 2):
        Path(path).write_bytes(b"broken %d" % number)
        with pytest.raises(Broken):
            SqliteLedger(path, NOW.replace(second=number))
    assert [content(aside) for aside in put_aside(path)] == [b"broken 1", b"broken 2"]
    assert not (tmp_path / "ledger.sqlite").exists()


# --- a ledger of an older version -----------------------------------------------------------------


@pytest.fixture
def frozen(path: str) -> str:
    """Copy the ledger that the first release wrote, and return the path of the copy."""
    shutil.copyfile(FROZEN / "schema-1.sqlite", path)
    return path


def test_frozen_ledger_of_schema_1_is_read_completely(frozen: str) -> None:
    """The ledger that the first release wrote can be read, and every value is the one that was written."""
    with opened(frozen) as ledger:
        # Schema 1 does not record which session continues which. The upgrade treats all sessions as unrelated.
        assert tuple(task.but(lineage=None) for task in reversed(ledger.tasks(Selection()))) == schema_1.TASKS
        lineages = {task.launch.session: task.lineage for task in ledger.tasks(Selection())}
        assert lineages[None] is None
        assert len(set(lineages.values())) == len(lineages)
        assert {id_: ledger.history(id_) for id_ in schema_1.HISTORIES} == schema_1.HISTORIES
        assert {task.id for task in ledger.unsettled()} == {"tqueued2", "trunning", "tlost222"}
        assert ledger.check_integrity() == []


def test_frozen_ledger_has_an_attempt_in_every_state() -> None:
    """The ledger that the first release wrote has an attempt in every possible state."""
    states = {each.state for task in schema_1.TASKS for each in task.attempts}
    assert states == {"queued", "running", "succeeded", "failed", "cancelled", "timed_out", "lost"}


def test_frozen_ledger_is_upgraded_to_the_current_schema(frozen: str, tmp_path: Path) -> None:
    """The upgraded ledger has the same schema as a new one, and accepts new tasks."""
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


def test_frozen_ledger_is_one_file_of_schema_1() -> None:
    """The ledger that the first release wrote is one complete file, without a write-ahead log."""
    assert sorted(each.name for each in FROZEN.glob("*.sqlite*")) == ["schema-1.sqlite"]
    header = (FROZEN / "schema-1.sqlite").read_bytes()[:100]
    assert header.startswith(b"SQLite format 3\0")
    assert int.from_bytes(header[60:64], "big") == 1


def test_pending_deliveries_survive_an_upgrade_from_schema_4(path: str) -> None:
    """An upgrade from schema 4 keeps notices and the state of their delivery, although it creates their table anew."""
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

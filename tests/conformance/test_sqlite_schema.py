"""The ledger's schema: it allows exactly the values of the domain, and refuses invalid rows."""

# The statements in this file are built from constants of the domain, so no outside input reaches them.
# ruff: noqa: S608

from __future__ import annotations

import ast
import inspect
import re
from typing import TYPE_CHECKING

import apsw
import pytest

from outlive.domain.sessions import client_task
from outlive.domain.tasks import evidence, lifecycle, task
from outlive.ledger.sqlite import SqliteLedger
from tests.conformance.steps import ended, enqueued, running
from tests.unit.values import NOW

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

ID = "t7k2m9q4"
# The domain has no list of these values.
NOTICE_KINDS = {"ended", "group_ended", "lost", "stalled", "input_required", "retrying", "overlap"}
NOTICE_STATES = {"pending", "claimed", "presented", "acked", "dismissed"}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    """Open an empty ledger."""
    with SqliteLedger(str(tmp_path / "ledger.sqlite"), NOW) as opened:
        yield opened


@pytest.fixture
def database(ledger: SqliteLedger, tmp_path: Path) -> Iterator[apsw.Connection]:
    """Open the ledger's file with a second connection, which bypasses `SqliteLedger`."""
    assert ledger.task(ID) is None
    connection = apsw.Connection(str(tmp_path / "ledger.sqlite"))
    connection.pragma("foreign_keys", value=True)
    yield connection
    connection.close()


def definition(database: apsw.Connection, name: str) -> str:
    """Return the SQL of a table or trigger from the file."""
    return str(database.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).get)


def allowed(database: apsw.Connection, table: str, column: str) -> set[str]:
    """Return the values that the CHECK of a column allows."""
    found = re.search(rf"CHECK \({column} IN \(([^)]*)\)\)", definition(database, table))
    assert found, f"{table}.{column} has no CHECK"
    return set(re.findall(r"'(\w+)'", found[1]))


def words(module: ModuleType, name: str) -> set[str]:
    """Return the values of a `Literal` that is defined only for type checkers."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return set(re.findall(r"'(\w+)'", ast.unparse(node.value)))
    raise AssertionError(f"{module.__name__} has no {name}")


@pytest.mark.parametrize(
    ("table", "column", "expected"),
    [
        ("attempt", "state", set(lifecycle.STATES)),
        ("attempt", "condition", set(lifecycle.CONDITIONS)),
        ("task", "mode", words(task, "Mode")),
        ("task", "notify", words(task, "Notify")),
        ("evidence", "kind", words(evidence, "EvidenceKind")),
        ("evidence", "started", words(evidence, "Started")),
        ("notice", "kind", NOTICE_KINDS),
        ("notice", "state", NOTICE_STATES),
        ("foreign_task", "kind", words(client_task, "ForeignKind")),
    ],
)
def test_column_allows_exactly_the_words_of_the_domain(
    database: apsw.Connection, table: str, column: str, expected: set[str]
) -> None:
    """The CHECK of a text column allows exactly the values that the domain defines."""
    assert allowed(database, table, column) == expected


def test_word_lists_at_run_time_equal_those_of_the_types() -> None:
    """`STATES`, `CONDITIONS` and `NOTIFY` have the same values as the `Literal` types that the type checker uses."""
    assert words(lifecycle, "State") == set(lifecycle.STATES)
    assert words(lifecycle, "Condition") == set(lifecycle.CONDITIONS)
    assert words(task, "Notify") == set(task.NOTIFY)


def test_trigger_allows_exactly_the_moves_of_the_domain(database: apsw.Connection) -> None:
    """The trigger `attempt_moves` allows exactly the changes of state in `lifecycle.MOVES`."""
    pairs = set(re.findall(r"\('(\w+)', '(\w+)'\)", definition(database, "attempt_moves")))
    assert pairs == {(before, after) for before, afters in lifecycle.MOVES.items() for after in afters}


def test_schema_lists_all_live_states_wherever_it_lists_some(database: apsw.Connection) -> None:
    """Each CHECK or index of the schema that lists states lists all live states, or all states."""
    for (sql,) in database.execute("SELECT sql FROM sqlite_schema WHERE sql LIKE '%''queued'', ''%'"):
        for listed in re.findall(r"state IN \(([^)]*)\)\s*(?:\)|$)", sql):
            named = set(re.findall(r"'(\w+)'", listed))
            assert named in (set(lifecycle.LIVE), set(lifecycle.STATES))


# --- the database refuses writes that would break an invariant -------------------------------------------


@pytest.mark.parametrize("before", lifecycle.STATES)
@pytest.mark.parametrize("after", lifecycle.STATES)
def test_database_refuses_state_changes_outside_the_table_of_moves(
    ledger: SqliteLedger, database: apsw.Connection, before: str, after: str
) -> None:
    """The database allows a change of state only if `may_move` allows it."""
    enqueued(ledger)
    # Insert the row in its first state. The trigger checks updates only.
    whole = {True: "NULL, NULL, NULL", False: "5, 'keeper', 6"}
    database.execute("DELETE FROM attempt")
    database.execute("DELETE FROM move")
    database.execute(
        "INSERT INTO attempt (task, number, state, boot, pid_namespace, created_at, settled_at,"
        f" settled_by, delete_after) VALUES (?, 1, ?, 'b', 1, 0, {whole[before in lifecycle.LIVE]})",
        (ID, before),
    )
    update = (
        "UPDATE attempt SET state = ?, started_at = 4, (settled_at, settled_by, delete_after) ="
        f" ({whole[after in lifecycle.LIVE]})"
    )
    if lifecycle.may_move(before, after):
        database.execute(update, (after,))
    else:
        with pytest.raises(apsw.ConstraintError, match="table of moves"):
            database.execute(update, (after,))


@pytest.mark.parametrize("missing", ["settled_at", "settled_by", "delete_after"])
@pytest.mark.parametrize("ending", lifecycle.TERMINAL)
def test_database_refuses_an_ended_attempt_without_its_other_columns(
    ledger: SqliteLedger, database: apsw.Connection, ending: str, missing: str
) -> None:
    """A terminal state needs a settlement time, the settling process and a deletion date."""
    running(ledger)
    given = {"settled_at": "5", "settled_by": "'keeper'", "delete_after": "6"}
    given[missing] = "NULL"
    changes = ", ".join(f"{name} = {value}" for name, value in given.items())
    with pytest.raises(apsw.ConstraintError, match="CHECK"):
        database.execute(f"UPDATE attempt SET state = '{ending}', {changes}")


@pytest.mark.parametrize("extra", ["settled_at = 5", "settled_by = 'keeper'", "delete_after = 6"])
def test_database_refuses_columns_of_an_ending_in_a_live_attempt(
    ledger: SqliteLedger, database: apsw.Connection, extra: str
) -> None:
    """A running attempt has no settlement time, no settling process and no deletion date."""
    running(ledger)
    with pytest.raises(apsw.ConstraintError, match="CHECK"):
        database.execute(f"UPDATE attempt SET {extra}")


@pytest.mark.parametrize("kind", ["ended", "lost"])
def test_database_refuses_a_second_ending_notice_of_an_attempt(
    ledger: SqliteLedger, database: apsw.Connection, kind: str
) -> None:
    """A second `ended` or `lost` notice is refused. A notice of another kind is accepted."""
    ended(ledger)
    insert = "INSERT INTO notice (id, task, attempt, kind, created_at) VALUES (?, ?, 1, ?, 0)"
    with pytest.raises(apsw.ConstraintError, match="UNIQUE"):
        database.execute(insert, ("n-2", ID, kind))
    database.execute(insert, ("n-3", ID, "stalled"))


@pytest.mark.parametrize("id_", ["../t7k2m9", "T7K2M9Q4", "t7k2", "a" * 41, "t7k2m9q4\n", ""])
def test_database_refuses_an_invalid_task_id(ledger: SqliteLedger, database: apsw.Connection, id_: str) -> None:
    """The database refuses a task id with a slash or a newline, because the id becomes the name of a directory."""
    enqueued(ledger)
    with pytest.raises(apsw.ConstraintError, match="CHECK"):
        database.execute("UPDATE task SET id = ?", (id_,))


def test_database_refuses_the_same_key_twice_in_a_project(ledger: SqliteLedger, database: apsw.Connection) -> None:
    """The database itself refuses a second task with the same key in a project, even without the check in `enqueue`."""
    enqueued(ledger, "taaaaaa1", key="k")
    enqueued(ledger, "taaaaaa2", key="l")
    with pytest.raises(apsw.ConstraintError, match="UNIQUE"):
        database.execute("UPDATE task SET key = 'k'")


@pytest.mark.parametrize("table", ["attempt", "evidence", "notice", "move"])
def test_deleting_a_task_deletes_its_rows_in_other_tables(
    ledger: SqliteLedger, database: apsw.Connection, table: str
) -> None:
    """If a task is deleted, its attempts, evidence, notices and moves are deleted too."""
    ended(ledger)
    assert database.execute(f"SELECT count(*) FROM {table}").get > 0
    database.execute("DELETE FROM task")
    assert database.execute(f"SELECT count(*) FROM {table}").get == 0

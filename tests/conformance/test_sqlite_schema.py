"""The schema knows what the domain knows, and the database itself refuses the rest."""

# Statements here are put together from the domain's own words.
# ruff: noqa: S608

from __future__ import annotations

import ast
import inspect
import re
from typing import TYPE_CHECKING

import apsw
import pytest

from outlive.domain import evidence, lifecycle, task
from outlive.ledger.sqlite import SqliteLedger
from tests.conformance.steps import ended, enqueued, running
from tests.unit.values import NOW

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

ID = "t7k2m9q4"
# Words of the interface that the domain has no table of.
NOTICE_KINDS = {"ended", "group_ended", "lost", "stalled", "input_required", "retrying", "overlap"}
NOTICE_STATES = {"pending", "claimed", "presented", "acked", "dismissed"}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    """Open an empty ledger."""
    with SqliteLedger(str(tmp_path / "ledger.sqlite"), NOW) as opened:
        yield opened


@pytest.fixture
def database(ledger: SqliteLedger, tmp_path: Path) -> Iterator[apsw.Connection]:
    """Open the file of the ledger behind its back."""
    assert ledger.task(ID) is None
    connection = apsw.Connection(str(tmp_path / "ledger.sqlite"))
    connection.pragma("foreign_keys", value=True)
    yield connection
    connection.close()


def definition(database: apsw.Connection, name: str) -> str:
    """The SQL of a table or trigger, as the file has it."""
    return str(database.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).get)


def allowed(database: apsw.Connection, table: str, column: str) -> set[str]:
    """The words that a column's own CHECK lets pass."""
    found = re.search(rf"CHECK \({column} IN \(([^)]*)\)\)", definition(database, table))
    assert found, f"{table}.{column} has no CHECK"
    return set(re.findall(r"'(\w+)'", found[1]))


def words(module: ModuleType, name: str) -> set[str]:
    """The words of a `Literal` that only type checkers see."""
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
    ],
)
def test_a_column_allows_the_words_of_the_domain(
    database: apsw.Connection, table: str, column: str, expected: set[str]
) -> None:
    """All of them and no other."""
    assert allowed(database, table, column) == expected


def test_the_tables_of_states_are_those_that_type_checkers_see() -> None:
    """What is checked at run time and what is checked before it are one list."""
    assert words(lifecycle, "State") == set(lifecycle.STATES)
    assert words(lifecycle, "Condition") == set(lifecycle.CONDITIONS)


def test_the_trigger_allows_the_moves_of_the_table(database: apsw.Connection) -> None:
    """Pair by pair."""
    pairs = set(re.findall(r"\('(\w+)', '(\w+)'\)", definition(database, "attempt_moves")))
    assert pairs == {(before, after) for before, afters in lifecycle.MOVES.items() for after in afters}


def test_every_mention_of_the_live_states_names_them_all(database: apsw.Connection) -> None:
    """CHECKs and indexes that speak of live attempts mean the domain's."""
    for (sql,) in database.execute("SELECT sql FROM sqlite_schema WHERE sql LIKE '%''queued'', ''%'"):
        for listed in re.findall(r"state IN \(([^)]*)\)\s*(?:\)|$)", sql):
            named = set(re.findall(r"'(\w+)'", listed))
            assert named in (set(lifecycle.LIVE), set(lifecycle.STATES))


# --- the database refuses what would break an invariant -------------------------------------------


@pytest.mark.parametrize("before", lifecycle.STATES)
@pytest.mark.parametrize("after", lifecycle.STATES)
def test_the_database_moves_only_by_the_table(
    ledger: SqliteLedger, database: apsw.Connection, before: str, after: str
) -> None:
    """Every pair of states, tried directly on a row in which all else is right."""
    enqueued(ledger)
    # The row is put into its state by inserting it anew, which is no move.
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
def test_the_database_refuses_half_an_ending(
    ledger: SqliteLedger, database: apsw.Connection, ending: str, missing: str
) -> None:
    """A terminal state without its moment, its author or its retention date."""
    running(ledger)
    given = {"settled_at": "5", "settled_by": "'keeper'", "delete_after": "6"}
    given[missing] = "NULL"
    changes = ", ".join(f"{name} = {value}" for name, value in given.items())
    with pytest.raises(apsw.ConstraintError, match="CHECK"):
        database.execute(f"UPDATE attempt SET state = '{ending}', {changes}")


@pytest.mark.parametrize("extra", ["settled_at = 5", "settled_by = 'keeper'", "delete_after = 6"])
def test_the_database_refuses_an_ending_of_what_lives(
    ledger: SqliteLedger, database: apsw.Connection, extra: str
) -> None:
    """A live attempt has no moment, author or date of an ending."""
    running(ledger)
    with pytest.raises(apsw.ConstraintError, match="CHECK"):
        database.execute(f"UPDATE attempt SET {extra}")


@pytest.mark.parametrize("kind", ["ended", "lost"])
def test_the_database_refuses_a_second_ending_notice(
    ledger: SqliteLedger, database: apsw.Connection, kind: str
) -> None:
    """Neither the same again under another id nor `lost` beside `ended`; another kind may join."""
    ended(ledger)
    insert = "INSERT INTO notice (id, task, attempt, kind, created_at) VALUES (?, ?, 1, ?, 0)"
    with pytest.raises(apsw.ConstraintError, match="UNIQUE"):
        database.execute(insert, ("n-2", ID, kind))
    database.execute(insert, ("n-3", ID, "stalled"))


@pytest.mark.parametrize("id_", ["../t7k2m9", "T7K2M9Q4", "t7k2", "a" * 41, "t7k2m9q4\n", ""])
def test_the_database_refuses_an_id_that_is_no_name(ledger: SqliteLedger, database: apsw.Connection, id_: str) -> None:
    """Ids become paths."""
    enqueued(ledger)
    with pytest.raises(apsw.ConstraintError, match="CHECK"):
        database.execute("UPDATE task SET id = ?", (id_,))


def test_the_database_refuses_a_second_holder_of_a_key(ledger: SqliteLedger, database: apsw.Connection) -> None:
    """Whatever a launcher believes."""
    enqueued(ledger, "taaaaaa1", key="k")
    enqueued(ledger, "taaaaaa2", key="l")
    with pytest.raises(apsw.ConstraintError, match="UNIQUE"):
        database.execute("UPDATE task SET key = 'k'")


@pytest.mark.parametrize("table", ["attempt", "evidence", "notice", "move"])
def test_nothing_stays_behind_a_task_that_is_deleted(
    ledger: SqliteLedger, database: apsw.Connection, table: str
) -> None:
    """What belongs to a task goes with it."""
    ended(ledger)
    assert database.execute(f"SELECT count(*) FROM {table}").get > 0
    database.execute("DELETE FROM task")
    assert database.execute(f"SELECT count(*) FROM {table}").get == 0

"""A write-ahead log is used only if SQLite has the fix of a bug in it, the WAL-reset bug."""

from __future__ import annotations

import apsw
import pytest

from outlive.ledger.open_ledger import journal_mode


@pytest.mark.parametrize(
    ("version", "mode"),
    [
        ((3, 40, 1), "truncate"),
        ((3, 44, 5), "truncate"),
        ((3, 44, 6), "wal"),
        ((3, 44, 99), "wal"),
        ((3, 45, 0), "truncate"),
        ((3, 50, 6), "truncate"),
        ((3, 50, 7), "wal"),
        ((3, 51, 0), "truncate"),
        ((3, 51, 2), "truncate"),
        ((3, 51, 3), "wal"),
        ((3, 52), "wal"),
        ((3, 54), "wal"),
        ((3, 54, 1), "wal"),
        ((4, 0, 0), "wal"),
    ],
)
def test_journal_mode_is_wal_only_when_the_reset_bug_is_fixed(version: tuple[int, ...], mode: str) -> None:
    """The mode is WAL only for an SQLite with the fix: since 3.51.3, and in 3.50.7 and 3.44.6."""
    assert journal_mode(version) == mode


def test_required_sqlite_has_the_fix() -> None:
    """The SQLite that is installed has the fix, even if it is the oldest one that Outlive allows."""
    installed = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    assert journal_mode(installed) == "wal"

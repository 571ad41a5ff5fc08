"""Which SQLite may use a write-ahead log: only one whose reset bug is mended."""

from __future__ import annotations

import apsw
import pytest

from outlive.ledger.opening import journal_mode


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
def test_wal_only_where_its_reset_bug_is_mended(version: tuple[int, ...], mode: str) -> None:
    """Fixed in 3.51.3, and in the branches 3.50 and 3.44 from 3.50.7 and 3.44.6 on."""
    assert journal_mode(version) == mode


def test_the_sqlite_we_require_is_a_mended_one() -> None:
    """The lowest version that may be installed has the fix."""
    installed = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    assert journal_mode(installed) == "wal"

"""Every acceptance scenario of the union of five systems that is answered has its test."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TASKS = {*range(1, 5), *range(9, 12), 15, *range(19, 26), 39, 43, *range(45, 48), 51, 53, 58}
QUEUES = {5, 6, 12, 14, 16, 17, 41, 42, 50, 54, 55, 56}
SESSIONS = {7, *range(26, 39), 40, 48, 57}
ANSWERED = TASKS | QUEUES | SESSIONS


def test_every_answered_row_is_named_by_a_test() -> None:
    """Tests say `Row 7:` or `Rows 7 and 8:` in their docstrings."""
    named: set[int] = set()
    for path in (ROOT / "tests" / "integration").glob("test_*.py"):
        for rows in re.findall(r"\bRows? ([\d, and]+)", path.read_text(encoding="utf-8")):
            named.update(int(number) for number in re.findall(r"\d+", rows))
    missing = sorted(ANSWERED - named)
    assert not missing

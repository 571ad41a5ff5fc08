"""A test that every acceptance scenario that Outlive meets is named by an integration test."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TASKS = {*range(1, 5), *range(9, 12), 15, *range(19, 26), 39, 43, *range(45, 48), 51, 53, 58}
QUEUES = {5, 6, 12, 14, 16, 17, 41, 42, 50, 54, 55, 56}
SESSIONS = {7, *range(26, 39), 40, 48, 57}
AGENTS = {13, 18, 49}
ANSWERED = TASKS | QUEUES | SESSIONS | AGENTS


def test_every_met_scenario_is_named_in_the_docstring_of_a_test() -> None:
    """For each scenario in `ANSWERED`, the docstring of an integration test names the number, as in `Row 7:`."""
    named: set[int] = set()
    for path in (ROOT / "tests" / "integration").rglob("test_*.py"):
        for rows in re.findall(r"\bRows? ([\d, and]+)", path.read_text(encoding="utf-8")):
            named.update(int(number) for number in re.findall(r"\d+", rows))
    missing = sorted(ANSWERED - named)
    assert not missing

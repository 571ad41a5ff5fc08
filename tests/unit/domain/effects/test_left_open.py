"""Comparing a path that an ended task left changed with its present state."""

from __future__ import annotations

import pytest

from outlive.domain.effects.left_open import LeftPath

LEFT = LeftPath(
    path="/p/a",
    name="/p/a",
    scope="/p",
    is_stash=False,
    opened_at=1,
    by="sed -i",
    found="f1",
    left="f2",
    must_be_same=False,
    written=0,
)


@pytest.mark.parametrize(
    ("now", "is_left", "looks"),
    [("f2", True, 1), ("f1", False, 1), ("?", True, 1), ("f3", False, 2)],
)
def test_left_path_reads_the_file_once_when_the_first_check_decides(now: str, is_left: bool, looks: int) -> None:
    """A second check, which reads the file again, is made only if the first check does not decide.

    A failed task may have left thousands of files changed.
    """
    seen: list[str] = []

    def look(_: str, known: str) -> str:
        seen.append(known)
        return now

    assert LEFT.is_left(look, lambda _: 0) is is_left
    assert len(seen) == looks

"""Comparing the present state of a path with the state in which an ended task left it."""

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
    """If the first check decides whether a file is still as the task left it, the file is not read a second time.

    A failed task may have left thousands of files changed.
    """
    seen: list[str] = []

    def look(_: str, known: str) -> str:
        seen.append(known)
        return now

    assert LEFT.is_left(look, lambda _: 0) is is_left
    assert len(seen) == looks

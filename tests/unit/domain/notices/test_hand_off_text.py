"""The hand-off shows whole sentences about tasks, even if the lines are short."""

from __future__ import annotations

import pytest

from outlive.domain.effects.effects import Effects, Window
from outlive.domain.notices.hand_off_text import HandOffText, Line, write_digest
from outlive.domain.tasks.task import Task
from tests.unit.values import NOW, SECOND, attempt, launch


@pytest.mark.parametrize("count", [1, 4, 20])
def test_hand_off_closes_the_bracket_around_a_command_with_semicolons(count: int) -> None:
    """The text of a command in brackets is not cut at a semicolon."""
    by = "/bin/sh -c sleep 4; echo x >> a.txt; git checkout a.txt"
    window = Window(scope="/home/u/repo", paths=("a.txt",), opened_at=NOW, closed_at=None, by=by, is_left=True)
    effects = Effects(level="observed", windows=(window,), gaps=("the start was not observed",))
    ended = attempt(state="failed", exit_code=1, started_at=NOW, settled_at=NOW + SECOND)
    task = Task(launch=launch(), attempts=(ended,))
    text = write_digest(HandOffText(ended=(Line(task=task, effects=effects),) * count), "mark", NOW)
    lines = [line for line in text.splitlines() if "left 1 file changed" in line]
    assert lines
    assert all(by in line or "…" in line for line in lines), text

"""The size of the answer of the MCP tool `list`."""

from __future__ import annotations

import json

import pytest

from outlive.domain.tasks.task import Task
from outlive.mcp.tools.list import short_document, short_line
from tests.unit.values import NOW, SECOND, attempt, launch

TWENTY_FIT_INTO = 8000


@pytest.mark.parametrize("letter", ["x", "\N{GRINNING FACE}", "\u00e9", '"', "\\"])
@pytest.mark.parametrize("has_description", [True, False])
def test_task_in_a_list_is_short_whatever_its_characters(letter: str, *, has_description: bool) -> None:
    """Twenty tasks fit into 8,000 bytes, even with long fields and escaped characters."""
    asked = launch(
        command=letter * 5000,
        description=letter * 5000 if has_description else None,
        cwd=f"/home/u/repo/{letter * 500}",
        group=letter * 500,
    )
    ended = attempt(
        state="cancelled",
        reason="dependency_failed",
        started_at=NOW,
        ended_at=NOW + 123_456 * SECOND,
        settled_at=NOW + 123_456 * SECOND,
    )
    task = Task(launch=asked, attempts=(ended,))
    parts = (short_line(task, NOW), short_document(task, NOW))
    assert sum(len(json.dumps(part, ensure_ascii=False).encode()) + 1 for part in parts) < TWENTY_FIT_INTO / 20 - 20

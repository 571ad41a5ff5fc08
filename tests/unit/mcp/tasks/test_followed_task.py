"""The interval at which the MCP server tells a client to ask for a task."""

from __future__ import annotations

from datetime import timedelta

import pytest

from outlive.domain.tasks.task import Task
from outlive.mcp.tasks.followed_task import poll_interval_s
from tests.unit.values import attempt, launch


@pytest.mark.parametrize(
    ("age_s", "interval_s"), [(0, 5), (30, 5), (50, 5), (100, 10), (599, 59.9), (600, 60), (1e6, 60), (-3600, 5)]
)
def test_the_poll_interval_grows_with_the_age_of_a_task(age_s: float, interval_s: float) -> None:
    """The interval grows with the age of a task from 5 to 60 seconds. If the clock was set back, it is 5."""
    task = Task(launch=launch(), attempts=(attempt(),))
    now = task.launch.created_at + timedelta(seconds=age_s)
    assert poll_interval_s(task, now) == pytest.approx(interval_s)

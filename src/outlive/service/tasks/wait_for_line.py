"""Waiting for a line of output while a task runs."""

from __future__ import annotations

from outlive.keeper.readiness.search_output import LineSearch
from outlive.service.tasks.follow_output import follow
from outlive.service.tasks.read import files_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import timedelta

    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Task
    from outlive.service.maintenance.reconcile import Adopter


def wait_until(
    home: Home,
    task: Task,
    pattern: str,
    *,
    timeout: timedelta | None,
    adopter: Adopter | None,
    departures: int | None = None,
) -> str | None:
    """Return the first line of a task's output that matches a pattern.

    Returns None if the task ends or the timeout passes without such a line. The text after the last newline counts as a
    line too, because a prompt for input does not end with a newline.
    """
    search = LineSearch(pattern)
    files = files_of(home, task)
    for piece in follow(home, task, files, 0, timeout=timeout, adopter=adopter, departures=departures):
        line = search.search(piece)
        if line is not None:
            return line
    return None

"""Waiting for a line of output while a task runs."""

from __future__ import annotations

import re

from outlive.domain.errors import UserError
from outlive.domain.text.sanitize import plain
from outlive.service.tasks.follow_output import follow
from outlive.service.tasks.read import files_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import timedelta

    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Task
    from outlive.service.maintenance.reconcile import Adopter

_LONGEST_LINE = 1 << 20


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
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise UserError(
            f"{pattern!r} is not a regular expression: {error}", "quote special characters with \\"
        ) from error
    rest = b""
    files = files_of(home, task)
    for piece in follow(home, task, files, 0, timeout=timeout, adopter=adopter, departures=departures):
        if piece.dropped_before or piece.restarted:
            rest = b""  # output was dropped here, so this piece does not continue the unfinished line
        *lines, rest = (rest + piece.content).split(b"\n")
        rest = rest[-_LONGEST_LINE:]
        for line in (*lines, rest):
            text = plain(line.decode("utf-8", "replace"))
            if wanted.search(text):
                return text
    return None

"""Waiting for a line of output, in the middle of a task's life."""

from __future__ import annotations

import re

from outlive.domain.errors import UserError
from outlive.domain.text import plain
from outlive.service.follow import follow
from outlive.service.view import files_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import timedelta

    from outlive.bundle.home import Home
    from outlive.domain.task import Task
    from outlive.service.reconcile import Adopter

_LONGEST_LINE = 1 << 20


def wait_until(
    home: Home, task: Task, pattern: str, *, timeout: timedelta | None, adopter: Adopter | None
) -> str | None:
    """The first line that matches; None if the task ended, or the time was up, without one.

    A line counts as soon as it matches, finished or not: prompts have no newline.
    """
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise UserError(
            f"{pattern!r} is not a regular expression: {error}", "quote special characters with \\"
        ) from error
    rest = b""
    for piece in follow(home, task, files_of(home, task), 0, timeout=timeout, adopter=adopter):
        if piece.dropped_before or piece.restarted:
            rest = b""  # a line does not go on behind what is gone
        *lines, rest = (rest + piece.content).split(b"\n")
        rest = rest[-_LONGEST_LINE:]
        for line in (*lines, rest):
            text = plain(line.decode("utf-8", "replace"))
            if wanted.search(text):
                return text
    return None

"""A line on the terminal that says what is being waited for; nowhere else, and gone afterwards."""

from __future__ import annotations

import os
import sys
import time

from outlive.cli.render import cut, terminal_columns
from outlive.domain.quantity import show_duration
from outlive.domain.when import timedelta
from outlive.service.view import last_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from outlive.bundle.home import Home
    from outlive.domain.task import Task


class Progress:
    """The progress line of a wait, written over and over; nothing where nobody sees it."""

    def __init__(self, home: Home, tasks: Sequence[Task], *, wanted: bool = True) -> None:
        self._home = home
        self._tasks = list(tasks)
        self._began = time.monotonic()
        self._is_seen = wanted and bool(tasks) and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    @property
    def tick(self) -> Self | None:
        """Itself, to be called every second; None where nobody sees it, so that nobody wakes up for it."""
        return self if self._is_seen else None

    def __call__(self) -> None:
        """Write the line anew."""
        waited = show_duration(timedelta(seconds=int(time.monotonic() - self._began)))
        if len(self._tasks) == 1:
            task = self._tasks[0]
            line = f"waiting for {task.id} ({waited}): {last_line(self._home, task) or task.launch.command}"
        else:
            line = f"waiting for {len(self._tasks)} tasks ({waited})"
        sys.stderr.write(f"\r\x1b[K{cut(line, terminal_columns(sys.stderr) - 1)}")
        sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_seen:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

"""The line on a terminal that shows which tasks a command waits for."""

from __future__ import annotations

import os
import sys
import time

from outlive.cli.formatting import cut, terminal_columns
from outlive.domain.text.units import show_duration
from outlive.domain.timestamps import timedelta
from outlive.service.tasks.read import last_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Task


class Progress:
    """A line on stderr that shows which tasks a command waits for.

    The line is written only if stderr is a terminal.
    """

    def __init__(self, home: Home, tasks: Sequence[Task], *, wanted: bool = True) -> None:
        self._home = home
        self._left: dict[str, Task] = {}
        self._known: set[str] = set()
        self.add(tasks)
        self._began = time.monotonic()
        self._is_seen = wanted and bool(tasks) and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def add(self, tasks: Sequence[Task]) -> None:
        """Add tasks that the command waits for.

        Tasks that were added before and tasks that have ended are ignored.
        """
        new = [task for task in tasks if task.id not in self._known]
        self._known.update(task.id for task in new)
        self._left.update((task.id, task) for task in new if task.current.settled_at is None)

    def remove(self, task: Task) -> None:
        """Remove a task from the line, because it has ended."""
        self._left.pop(task.id, None)

    @property
    def tick(self) -> Self | None:
        """The function to call every second of the wait, or None if no line is shown."""
        return self if self._is_seen else None

    def __call__(self) -> None:
        """Write the progress line again."""
        waited = show_duration(timedelta(seconds=int(time.monotonic() - self._began)))
        if len(self._left) == 1:
            (task,) = self._left.values()
            line = f"waiting for {task.id} ({waited}): {last_line(self._home, task) or task.launch.command}"
        else:
            line = f"waiting for {len(self._left)} of {len(self._known)} tasks ({waited})"
        sys.stderr.write(f"\r\x1b[K{cut(line, terminal_columns(sys.stderr) - 1)}")
        sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_seen:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

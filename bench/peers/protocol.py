"""The methods that a peer must have to be measured.

A peer is a tool that runs commands in the background. Each way of submitting a command is a subclass. The stages of the
benchmark use only these methods. A peer does not override a method that it cannot support. The result table then shows
that instead of a number.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, NamedTuple

from measure import PATIENCE, is_alive, parent_of, pids_marked, spawn, until

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MARK = "OUTLIVE_BENCH_PEER"


class Guard(NamedTuple):
    """The processes that look after one task, with a name for the result table."""

    name: str
    pids: tuple[int, ...]


class Peer:
    """One tool and one way to run commands in the background with it.

    All files of the tool are in the directory `place`.
    """

    name = ""
    programs: tuple[str, ...] = ()
    """The names of the programs that must be on PATH."""
    record = ""
    """A few words for the result table: where and how the tool records a task."""
    is_durable = False
    """Whether the record of a task is synced to disk when the call that submits the task returns."""
    is_warm = False
    """Whether a running Python program submits the tasks. Otherwise, each task is submitted by a new process."""
    waits_inside = False
    """Whether a running program waits for the task. Otherwise, a command waits, and its own exit takes time, too."""
    is_slow = False
    """Whether the peer is measured only in every third round, so that the benchmark ends in minutes."""
    waiter = "blocked"
    """A few words for the result table: what a waiting process does until the task ends."""
    short_tasks = 1000
    running_tasks = 100
    records = 1000
    """The number of task records that the tool can create in a minute. 0 means that the tool does not list ended tasks.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir(parents=True)
        self.env = {**os.environ, MARK: place.name, "TMPDIR": str(place)}

    @classmethod
    def missing(cls) -> str | None:
        """Return why this tool cannot be measured on this machine, or None if it can."""
        absent = [program for program in cls.programs if shutil.which(program) is None]
        return f"not installed: {', '.join(absent)}" if absent else None

    def start(self, slots: int) -> None:
        """Start the tool's server, if it has one. `slots` tasks can then run at once."""

    def stop(self) -> None:
        """End the tool's server."""

    def submit(self, argv: Sequence[str]) -> str:
        """Submit a command as a user would, and return the tool's name for the task."""
        raise NotImplementedError

    def submit_many(self, argv: Sequence[str], count: int) -> list[str]:
        """Submit a command many times.

        A peer overrides this if it can submit many commands in one call. The time is not measured.
        """
        return [self.submit(argv) for _ in range(count)]

    def wait(self, ticket: str, patience: float = PATIENCE) -> str:
        """Wait until the tool reports the end of a task.

        Returns `told` then, `blocked` if the tool does not report the end in time, or the tool's error message.
        """
        raise NotImplementedError

    def finished(self) -> int:
        """Return the number of tasks that the tool has recorded as ended."""
        raise NotImplementedError

    def code(self, ticket: str) -> int | None:
        """Return the exit code that the tool has recorded for a task."""
        raise NotImplementedError

    def output(self, ticket: str) -> str:
        """Return the output that the tool has recorded for a task."""
        raise NotImplementedError

    def show_all(self) -> None:
        """Show all recorded tasks, as a user of the tool would."""
        raise NotImplementedError

    def fill(self, count: int) -> None:
        """Add task records until there are `count`, by running `true` or by a faster way.

        Raises `TimeoutError` if that takes too long.
        """
        for _ in range(count - self.finished()):
            self.submit(["true"])
        until(lambda: self.finished() >= count, f"{self.name}: {count} records")

    def guards(self, task: int) -> list[Guard]:
        """Return the processes to kill, one test after the other, while a task runs.

        `task` is the process id of the task's command.
        """
        return [Guard("its parent", (parent_of(task),))]

    def revive(self, slots: int) -> None:
        """Start the tool's server again after it was killed.

        A user would do so before asking for the result of a task.
        """

    def pids(self) -> list[int]:
        """Return the processes of the tool, including the processes of its tasks."""
        return pids_marked(f"{MARK}={self.place.name}")

    def run(self, *argv: str, patience: float | None = None) -> str:
        """Run one of the tool's programs, and return its output."""
        ran = spawn([which(argv[0]), *argv[1:]], self.env, patience)
        if ran.code:
            raise RuntimeError(f"{' '.join(argv)}: exit code {ran.code}: {ran.out.strip()[-300:]}")
        return ran.out.strip()

    def hear(self, *argv: str, patience: float) -> str:
        """Run the tool's program that waits for a task.

        Returns `told` if the program reports the end, `blocked` after `patience` seconds, or the program's error
        message.
        """
        ran = spawn([which(argv[0]), *argv[1:]], self.env, patience)
        if ran.code is None:
            return "blocked"
        lines = ran.out.strip().splitlines()
        return "told" if ran.code == 0 else f"error {ran.code}: {lines[-1] if lines else 'no word'}"


class Server:
    """A server process that the benchmark has started.

    The benchmark ends it by its process id.
    """

    def __init__(self, argv: Sequence[str], env: dict[str, str], log: Path) -> None:
        quiet = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        program = which(argv[0])  # argv[0] is also the full path, because Python finds its virtual environment by it
        self.pid = os.posix_spawn(program, [program, *argv[1:]], env, file_actions=quiet, setsid=True)

    def end(self, number: int) -> None:
        """Send a signal to the server, and wait until it has exited."""
        if is_alive(self.pid):
            os.kill(self.pid, number)
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:
            pass


def which(program: str) -> str:
    """Return the full path of a program.

    The path is cached, because the search on PATH must not be part of a measured time.
    """
    if program not in _PATHS:
        beside_us = os.path.join(os.path.dirname(sys.executable), program)
        _PATHS[program] = beside_us if os.path.exists(beside_us) else shutil.which(program) or program
    return _PATHS[program]


_PATHS: dict[str, str] = {}

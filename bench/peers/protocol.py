"""The methods that a peer must have to be measured.

Each way of submitting is a subclass. The stages use only these methods. A peer does not override a method that it
cannot support, and the table then says so instead of showing a number.
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
    """Processes that look after one task, with a name for the table."""

    name: str
    pids: tuple[int, ...]


class Peer:
    """One way to run a command in the background.

    All of its files are in `place`.
    """

    name = ""
    programs: tuple[str, ...] = ()
    """The programs that must be on PATH."""
    record = ""
    """Where and how the peer records a task, in a few words."""
    is_durable = False
    """Whether the record is synced to disk when the submit returns."""
    is_warm = False
    """Whether a running Python program submits, instead of a new process for each submit."""
    waits_inside = False
    """Whether the waiter is a running program, instead of a command that must exit."""
    is_slow = False
    """Whether the peer takes part in every third round only, so that a run ends in minutes."""
    waiter = "blocked"
    """What a waiter does until the task ends."""
    short_tasks = 1000
    running_tasks = 100
    records = 1000
    """How many records the peer can be filled with in a minute. 0 if it has no list of ended tasks."""

    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir(parents=True)
        self.env = {**os.environ, MARK: place.name, "TMPDIR": str(place)}

    @classmethod
    def missing(cls) -> str | None:
        """Return why the peer cannot be measured here. Return None if it can."""
        absent = [program for program in cls.programs if shutil.which(program) is None]
        return f"not installed: {', '.join(absent)}" if absent else None

    def start(self, slots: int) -> None:
        """Start the peer's server, if it has one, with slots for so many tasks at once."""

    def stop(self) -> None:
        """End the peer's server."""

    def submit(self, argv: Sequence[str]) -> str:
        """Launch a command as a user would, and return the peer's name for the task."""
        raise NotImplementedError

    def submit_many(self, argv: Sequence[str], count: int) -> list[str]:
        """Launch a command many times.

        A peer overrides this if it can do so in one call and the time is not measured.
        """
        return [self.submit(argv) for _ in range(count)]

    def wait(self, ticket: str, patience: float = PATIENCE) -> str:
        """Block until the peer reports the end of a task.

        Returns `told`, `blocked` if the peer does not report the end, or the peer's error.
        """
        raise NotImplementedError

    def finished(self) -> int:
        """Return how many tasks the peer has recorded as ended."""
        raise NotImplementedError

    def code(self, ticket: str) -> int | None:
        """Return the recorded exit code."""
        raise NotImplementedError

    def output(self, ticket: str) -> str:
        """Return the recorded output of a task."""
        raise NotImplementedError

    def show_all(self) -> None:
        """Show all recorded tasks, as a user of the peer would."""
        raise NotImplementedError

    def fill(self, count: int) -> None:
        """Add records until there are so many, by running `true` or by a faster way.

        Raises `TimeoutError` if that takes too long.
        """
        for _ in range(count - self.finished()):
            self.submit(["true"])
        until(lambda: self.finished() >= count, f"{self.name}: {count} records")

    def guards(self, task: int) -> list[Guard]:
        """Return the processes to kill in turn while the process `task` runs."""
        return [Guard("its parent", (parent_of(task),))]

    def revive(self, slots: int) -> None:
        """Start the server again after it was killed.

        A user would do so before asking for the result of a task.
        """

    def pids(self) -> list[int]:
        """Return the processes of the peer, including the processes of its tasks."""
        return pids_marked(f"{MARK}={self.place.name}")

    def run(self, *argv: str, patience: float | None = None) -> str:
        """Run one of the peer's programs, and return its output."""
        ran = spawn([which(argv[0]), *argv[1:]], self.env, patience)
        if ran.code:
            raise RuntimeError(f"{' '.join(argv)}: exit code {ran.code}: {ran.out.strip()[-300:]}")
        return ran.out.strip()

    def hear(self, *argv: str, patience: float) -> str:
        """Run one of the peer's programs that waits for a task.

        Returns `told`, `blocked` after `patience` seconds, or the program's error.
        """
        ran = spawn([which(argv[0]), *argv[1:]], self.env, patience)
        if ran.code is None:
            return "blocked"
        lines = ran.out.strip().splitlines()
        return "told" if ran.code == 0 else f"error {ran.code}: {lines[-1] if lines else 'no word'}"


class Server:
    """A server that the benchmark started and ends by its process id."""

    def __init__(self, argv: Sequence[str], env: dict[str, str], log: Path) -> None:
        quiet = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        program = which(argv[0])  # the full path also as argv[0], by which Python finds its virtual environment
        self.pid = os.posix_spawn(program, [program, *argv[1:]], env, file_actions=quiet, setsid=True)

    def end(self, number: int) -> None:
        """Signal the server, and wait until it has exited."""
        if is_alive(self.pid):
            os.kill(self.pid, number)
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:
            pass


def which(program: str) -> str:
    """Return the full path of a program.

    The path is cached, because the search must not be part of a measured submit.
    """
    if program not in _PATHS:
        beside_us = os.path.join(os.path.dirname(sys.executable), program)
        _PATHS[program] = beside_us if os.path.exists(beside_us) else shutil.which(program) or program
    return _PATHS[program]


_PATHS: dict[str, str] = {}

"""What a peer must be able to do to stand in the table.

One subclass per way of submitting. The stages know only this; whatever a peer cannot do it does not
override, and the table says so instead of showing a number.
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
    """Processes that look after one task, by a name for the table."""

    name: str
    pids: tuple[int, ...]


class Peer:
    """One way to run a command in the background. All of its state lies in `place`."""

    name = ""
    programs: tuple[str, ...] = ()
    """What must be on PATH."""
    record = ""
    """What it keeps of a task, in a few words."""
    is_durable = False
    """Whether that is on disk, synced, when the submit returns."""
    is_warm = False
    """Whether it submits from a running Python program instead of a fresh process."""
    waits_inside = False
    """Whether whoever waits is a running program too; for the others it is a command that has to come back."""
    is_slow = False
    """Whether it sits out two rounds of three, so that a run ends in minutes."""
    waiter = "blocked"
    """What whoever waits for an end does meanwhile."""
    short_tasks = 1000
    running_tasks = 100
    records = 1000
    """Up to how many records it can be filled with within a minute; 0 if it has no list."""

    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir(parents=True)
        self.env = {**os.environ, MARK: place.name, "TMPDIR": str(place)}

    @classmethod
    def missing(cls) -> str | None:
        """Why it cannot be measured here; None if it can."""
        absent = [program for program in cls.programs if shutil.which(program) is None]
        return f"not installed: {', '.join(absent)}" if absent else None

    def start(self, slots: int) -> None:
        """Start its server, if it has one, for so many tasks at once."""

    def stop(self) -> None:
        """End its server."""

    def submit(self, argv: Sequence[str]) -> str:
        """Hand over a command; returns when the peer's own submit does, with its name for the task."""
        raise NotImplementedError

    def submit_many(self, argv: Sequence[str], count: int) -> list[str]:
        """The same so many times; only a peer that can do it in one go, where time does not count, overrides it."""
        return [self.submit(argv) for _ in range(count)]

    def wait(self, ticket: str, patience: float = PATIENCE) -> str:
        """Block until the peer says that it has ended: `told`, `blocked` if it never does, or its error."""
        raise NotImplementedError

    def finished(self) -> int:
        """How many tasks it has on record as ended."""
        raise NotImplementedError

    def code(self, ticket: str) -> int | None:
        """The exit code it has on record."""
        raise NotImplementedError

    def output(self, ticket: str) -> str:
        """What it has kept of the task's output."""
        raise NotImplementedError

    def show_all(self) -> None:
        """Show what is on record, as its user would."""
        raise NotImplementedError

    def fill(self, count: int) -> None:
        """Bring the records up to so many; by running `true` unless there is a quicker way to the same.

        Raises TimeoutError if that would take too long on a machine as busy as this.
        """
        for _ in range(count - self.finished()):
            self.submit(["true"])
        until(lambda: self.finished() >= count, f"{self.name}: {count} records")

    def guards(self, task: int) -> list[Guard]:
        """Whom to kill in turn while the process `task` runs, as its user would name them."""
        return [Guard("its parent", (parent_of(task),))]

    def revive(self, slots: int) -> None:
        """Start the server again after it was killed, as its user would to ask what had happened."""

    def pids(self) -> list[int]:
        """Every process of its own; the tasks themselves are told apart by their name."""
        return pids_marked(f"{MARK}={self.place.name}")

    def run(self, *argv: str, patience: float | None = None) -> str:
        """Call one of its programs; what it printed."""
        ran = spawn([which(argv[0]), *argv[1:]], self.env, patience)
        if ran.code:
            raise RuntimeError(f"{' '.join(argv)}: exit code {ran.code}: {ran.out.strip()[-300:]}")
        return ran.out.strip()

    def hear(self, *argv: str, patience: float) -> str:
        """Let one of its programs wait."""
        ran = spawn([which(argv[0]), *argv[1:]], self.env, patience)
        if ran.code is None:
            return "blocked"
        lines = ran.out.strip().splitlines()
        return "told" if ran.code == 0 else f"error {ran.code}: {lines[-1] if lines else 'no word'}"


class Server:
    """A server we started, and end by its own pid."""

    def __init__(self, argv: Sequence[str], env: dict[str, str], log: Path) -> None:
        quiet = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        program = which(argv[0])  # whole also as argv[0]: by it a virtual environment knows itself
        self.pid = os.posix_spawn(program, [program, *argv[1:]], env, file_actions=quiet, setsid=True)

    def end(self, number: int) -> None:
        """Signal it, and wait until it is gone."""
        if is_alive(self.pid):
            os.kill(self.pid, number)
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:
            pass


def which(program: str) -> str:
    """The whole path of a program; looked up once, because a submit should not pay for it."""
    if program not in _PATHS:
        beside_us = os.path.join(os.path.dirname(sys.executable), program)
        _PATHS[program] = beside_us if os.path.exists(beside_us) else shutil.which(program) or program
    return _PATHS[program]


_PATHS: dict[str, str] = {}

"""nq: a queue of locked files. A task is a file, and its process has the lock."""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING

from measure import PATIENCE

from peers.protocol import Peer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_ENDED = re.compile(r"\[exited with status (\d+)\.\]\s*\Z")


class Nq(Peer):
    """nq, measured with one directory per queue.

    Tasks in one directory run one after the other. Tasks in several directories run at the same time.
    """

    name = "nq"
    programs = ("nq",)
    record = "the output file, not synced"
    records = 10_000

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.env["NQDIR"] = str(place)

    def submit(self, argv: Sequence[str]) -> str:
        """Submit a command with `nq`, and return the path of the task's file."""
        return f"{self.env['NQDIR']}/{self.run('nq', *argv)}"

    def submit_many(self, argv: Sequence[str], count: int) -> list[str]:
        """Submit each command in a directory of its own.

        In one directory, the commands would wait for each other.
        """
        tickets = []
        for number in range(count):
            self.env["NQDIR"] = str(self.place / f"beside-{number}")
            tickets.append(self.submit(argv))
        self.env["NQDIR"] = str(self.place)
        return tickets

    def wait(self, ticket: str, patience: float = PATIENCE) -> str:
        """Wait with `nq -w`, which blocks on the lock of the task's file."""
        return self.hear("nq", "-w", ticket.rpartition("/")[2], patience=patience)

    def finished(self) -> int:
        """Return the number of task files whose last line says that the task has ended."""
        names = [name for name in os.listdir(self.place) if name.startswith(",")]
        return sum(self.code(f"{self.place}/{name}") is not None for name in names)

    def code(self, ticket: str) -> int | None:
        """Return the exit code, which is in the last line of the task's file."""
        found = _ENDED.search(self.output(ticket))
        return int(found[1]) if found else None

    def output(self, ticket: str) -> str:
        """Return the content of the task's file, which is the output."""
        with open(ticket) as file:
            return file.read()

    def show_all(self) -> None:
        """Search the task files for lines that report an end.

        nq has no list of ended tasks, and its manual suggests this search.
        """
        self.run("sh", "-c", f"cd {self.place} && grep -H '^.exited' ,*")

    def fill(self, count: int) -> None:
        """Copy the file of an ended task many times.

        nq's record of a task is a file.
        """
        ended = next(name for name in os.listdir(self.place) if name.startswith(","))
        for number in range(self.finished(), count):
            shutil.copyfile(self.place / ended, self.place / f",fill.{number}")

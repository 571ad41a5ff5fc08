"""A plain shell: `setsid nohup COMMAND &`, which writes the exit code to a file.

The output goes to another file.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from measure import PATIENCE

from peers.protocol import Peer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Setsid(Peer):
    """The usual shell line for a background command. It also records the exit code."""

    name = "setsid nohup, rc file"
    programs: tuple[str, ...] = ("setsid", "nohup")
    record = "a file with the code, not synced"
    waiter = "polls every 0.1 s"
    records = 10_000

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self._count = 0

    def submit(self, argv: Sequence[str]) -> str:
        """Run a shell that starts a second shell in the background and exits."""
        self._count += 1
        stem = f"{self.place}/{self._count}"
        inner = f"{shlex.join(argv)}; echo $? >{stem}.rc"
        self.run("sh", "-c", f"exec setsid -f nohup sh -c {shlex.quote(inner)} >{stem}.out 2>&1 </dev/null")
        return stem

    def wait(self, ticket: str, patience: float = PATIENCE) -> str:
        """Poll for the file with the exit code.

        The shell does not notify a waiting process.
        """
        return self.hear("sh", "-c", f"until [ -s {ticket}.rc ]; do sleep 0.1; done", patience=patience)

    def finished(self) -> int:
        """Return the number of files that contain an exit code."""
        with os.scandir(self.place) as entries:
            return sum(entry.name.endswith(".rc") and entry.stat().st_size > 0 for entry in entries)

    def code(self, ticket: str) -> int | None:
        """Return the exit code in the task's file.

        Return None if the shell was killed before it wrote the file.
        """
        try:
            with open(f"{ticket}.rc") as file:
                return int(file.read())
        except OSError:
            return None

    def output(self, ticket: str) -> str:
        """Return the content of the task's output file."""
        with open(f"{ticket}.out") as file:
            return file.read()

    def show_all(self) -> None:
        """Print the exit code in every task's file."""
        self.run("sh", "-c", f"cd {self.place} && grep -H . *.rc")

    def fill(self, count: int) -> None:
        """Write files with an exit code, because the record of a task is such a file."""
        for number in range(self.finished() + 1, count + 1):
            with open(f"{self.place}/f{number}.rc", "w") as file:
                file.write("0\n")

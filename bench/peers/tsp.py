"""task-spooler: a server in C with a task list in memory, and a process per task."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from measure import PATIENCE, is_alive, parent_of, until

from peers.protocol import Guard, Peer, which

if TYPE_CHECKING:
    from collections.abc import Sequence

_FILLING = 45.0


class Tsp(Peer):
    """task-spooler, whose program is called `tsp` in Debian."""

    name = "task-spooler"
    programs = ("tsp",)
    record = "in the server's memory"
    records = 10_000
    _server = 0

    def start(self, slots: int) -> None:
        """Start the server by a first call, and find its process id.

        Before the first task, the server is the only process of task-spooler.
        """
        self.env["TS_SOCKET"] = str(self.place / "socket")
        self.env["TS_MAXFINISHED"] = "20000"
        self.env["TS_MAXCONN"] = "1000"
        self.env["TS_SLOTS"] = str(slots)
        self.run("tsp", "-l")
        self._server = next(pid for pid in self.pids() if os.path.realpath(f"/proc/{pid}/exe") == which("tsp"))

    def stop(self) -> None:
        """End the server by its process id, because a server that hangs ignores `tsp -K`."""
        if self._server and is_alive(self._server):
            os.kill(self._server, 15)
            until(lambda: not is_alive(self._server), "the end of tsp's server")
        (self.place / "socket").unlink(missing_ok=True)

    revive = start

    def submit(self, argv: Sequence[str]) -> str:
        """Submit a command, and return the number that the server gave the task."""
        return self.run("tsp", *argv)

    def wait(self, ticket: str, patience: float = PATIENCE) -> str:
        """Wait with `tsp -w`, which blocks on a socket.

        The exit code of `tsp -w` is that of the task, so only printed text counts as an error.
        """
        heard = self.hear("tsp", "-w", ticket, patience=patience)
        return "told" if heard.endswith("no word") else heard

    def finished(self) -> int:
        """Return the number of tasks that the server lists as `finished`."""
        return sum(line.split()[1] == "finished" for line in self.run("tsp", "-l").splitlines()[1:])

    def code(self, ticket: str) -> int | None:
        """Return the exit code in the server's list. The code -1 stands for a signal."""
        for line in self.run("tsp", "-l").splitlines()[1:]:
            words = line.split()
            if words[:2] == [ticket, "finished"]:
                return int(words[3])
        return None

    def output(self, ticket: str) -> str:
        """Return the content of the task's output file. The server returns its path."""
        with open(self.run("tsp", "-o", ticket)) as file:
            return file.read()

    def show_all(self) -> None:
        """Print the server's whole list, because `tsp` cannot print a part of it."""
        self.run("tsp", "-l")

    def fill(self, count: int) -> None:
        """Run many tasks by a loop in a shell, which is faster than a loop in Python."""
        loop = f"i={self.finished()}; while [ $i -lt {count} ]; do tsp true; i=$((i + 1)); done"
        self.run("sh", "-c", loop, patience=_FILLING)
        until(lambda: self.finished() >= count, f"{self.name}: {count} records", patience=1)

    def guards(self, task: int) -> list[Guard]:
        """Return two processes: the server, and the one that started the command.

        The second process reports the command's end to the server.
        """
        return [Guard("server", (self._server,)), Guard("runner", (parent_of(task),))]

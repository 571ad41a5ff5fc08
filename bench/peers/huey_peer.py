"""huey on SQLite: a process runs functions in threads, and polls for tasks."""

from __future__ import annotations

import importlib.util
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from measure import PATIENCE, until

from peers.protocol import Guard, Peer, Server

if TYPE_CHECKING:
    from collections.abc import Sequence

_PROGRAM = str(Path(__file__).parent / "huey_queue.py")


class HueyCold(Peer):
    """huey with a new script for each submitted task, as a user of a shell would do."""

    name = "huey, script"
    record = "SQLite, synced"
    is_durable = True
    waits_inside = True
    is_slow = True
    waiter = "polls, 0.1 s growing to 1 s"
    short_tasks = 50
    records = 0  # the stage that measures lists measures HueyApi instead
    _server: Server | None = None

    @classmethod
    def missing(cls) -> str | None:
        """Return why huey cannot be measured. Return None if it is installed.

        The optional dependencies `bench` of Outlive install it.
        """
        return None if importlib.util.find_spec("huey") else "not installed: huey from PyPI"

    def start(self, slots: int) -> None:
        """Start huey's consumer process with one thread per task."""
        from peers.huey_queue import open_queue  # noqa: PLC0415 - the package may not be installed

        self._database = f"{self.place}/queue.sqlite"
        self._queue, self._run_command = open_queue(self._database)
        argv = ["python", _PROGRAM, "consume", self._database, str(slots)]
        self._server = Server(argv, self.env, self.place / "consumer.out")
        self.wait(self.submit(["true"]))

    def stop(self) -> None:
        """Kill huey's consumer process.

        A signal to stop would let the consumer finish the running tasks first.
        """
        if self._server:
            self._server.end(signal.SIGKILL)

    def revive(self, slots: int) -> None:
        """Start another consumer process on the same database file."""
        self.stop()
        self.start(slots)

    def submit(self, argv: Sequence[str]) -> str:
        """Submit a command by a new interpreter that runs huey's script."""
        return self.run("python", _PROGRAM, "submit", self._database, *argv)

    def submit_many(self, argv: Sequence[str], count: int) -> list[str]:
        """Submit commands from the benchmark's own process. The time is not measured."""
        return [str(self._run_command(list(argv)).id) for _ in range(count)]

    def wait(self, ticket: str, patience: float = PATIENCE) -> str:
        """Wait with huey's blocking read, which polls the database."""
        from huey.exceptions import ResultTimeout  # noqa: PLC0415

        try:
            self._queue.result(ticket, blocking=True, timeout=patience, preserve=True)
        except ResultTimeout:
            return "blocked"
        return "told"

    def finished(self) -> int:
        """Return the number of task results in huey's database."""
        return int(self._queue.result_count())

    def code(self, ticket: str) -> int | None:
        """Return the exit code, which is the first part of the task's result."""
        result = self._queue.result(ticket, preserve=True)
        return None if result is None else result[0]

    def output(self, ticket: str) -> str:
        """Return the output, which is the second part of the task's result."""
        result = self._queue.result(ticket, preserve=True)
        return "" if result is None else result[1]

    def show_all(self) -> None:
        """Read every task result at once, because huey has no command that lists tasks."""
        self._queue.all_results()

    def guards(self, task: int) -> list[Guard]:
        """Return huey's consumer process, which is the parent of all tasks."""
        del task
        return [Guard("consumer", (self._server.pid if self._server else 0,))]


class HueyApi(HueyCold):
    """huey, called by a running program. The call returns before the command runs."""

    name = "huey, API"
    is_warm = True
    short_tasks = 1000
    records = 1000

    def submit(self, argv: Sequence[str]) -> str:
        """Submit a command from the benchmark's own process."""
        return str(self._run_command(list(argv)).id)

    def fill(self, count: int) -> None:
        """Run tasks until huey's database contains `count` results.

        The wait may be long, because the consumer's polling interval may have grown to ten seconds.
        """
        for _ in range(count - self.finished()):
            self.submit(["true"])
        until(lambda: self.finished() >= count, f"{self.name}: {count} records", patience=2 * PATIENCE)

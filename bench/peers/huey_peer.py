"""huey on SQLite: functions run in threads of one consumer, which polls."""

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
    """huey with a new script for each submit, as from a shell."""

    name = "huey, script"
    record = "SQLite, synced"
    is_durable = True
    waits_inside = True
    is_slow = True
    waiter = "polls, 0.1 s growing to 1 s"
    short_tasks = 50
    records = 0  # the listing stage measures HueyApi instead
    _server: Server | None = None

    @classmethod
    def missing(cls) -> str | None:
        """Return why huey is missing. The extra `bench` installs it."""
        return None if importlib.util.find_spec("huey") else "not installed: huey from PyPI"

    def start(self, slots: int) -> None:
        """Start a consumer with one thread per task."""
        from peers.huey_queue import open_queue  # noqa: PLC0415 - may not be installed

        self._database = f"{self.place}/queue.sqlite"
        self._queue, self._run_command = open_queue(self._database)
        argv = ["python", _PROGRAM, "consume", self._database, str(slots)]
        self._server = Server(argv, self.env, self.place / "consumer.out")
        self.wait(self.submit(["true"]))

    def stop(self) -> None:
        """Kill the consumer.

        After an interrupt it would finish the running tasks first.
        """
        if self._server:
            self._server.end(signal.SIGKILL)

    def revive(self, slots: int) -> None:
        """Start another consumer on the same file."""
        self.stop()
        self.start(slots)

    def submit(self, argv: Sequence[str]) -> str:
        """Enqueue a command with a new interpreter."""
        return self.run("python", _PROGRAM, "submit", self._database, *argv)

    def submit_many(self, argv: Sequence[str], count: int) -> list[str]:
        """Enqueue commands from this program, where the time is not measured."""
        return [str(self._run_command(list(argv)).id) for _ in range(count)]

    def wait(self, ticket: str, patience: float = PATIENCE) -> str:
        """Wait with huey's blocking read, which polls."""
        from huey.exceptions import ResultTimeout  # noqa: PLC0415

        try:
            self._queue.result(ticket, blocking=True, timeout=patience, preserve=True)
        except ResultTimeout:
            return "blocked"
        return "told"

    def finished(self) -> int:
        """Return the number of results in the store."""
        return int(self._queue.result_count())

    def code(self, ticket: str) -> int | None:
        """Return the first part of the result."""
        result = self._queue.result(ticket, preserve=True)
        return None if result is None else result[0]

    def output(self, ticket: str) -> str:
        """Return the second part of the result."""
        result = self._queue.result(ticket, preserve=True)
        return "" if result is None else result[1]

    def show_all(self) -> None:
        """Read every result at once, because huey has no command that lists tasks."""
        self._queue.all_results()

    def guards(self, task: int) -> list[Guard]:
        """Return the consumer, which is the parent of all tasks."""
        del task
        return [Guard("consumer", (self._server.pid if self._server else 0,))]


class HueyApi(HueyCold):
    """huey from a running program. The call returns before the command runs."""

    name = "huey, API"
    is_warm = True
    short_tasks = 1000
    records = 1000

    def submit(self, argv: Sequence[str]) -> str:
        """Enqueue a command from this program."""
        return str(self._run_command(list(argv)).id)

    def fill(self, count: int) -> None:
        """Run tasks until the store has so many results.

        The wait may be long, because the consumer's polling interval may have grown to ten seconds.
        """
        for _ in range(count - self.finished()):
            self.submit(["true"])
        until(lambda: self.finished() >= count, f"{self.name}: {count} records", patience=2 * PATIENCE)

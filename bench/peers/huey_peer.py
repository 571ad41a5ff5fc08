"""huey on SQLite: functions in the threads of one consumer, which looks for work at intervals."""

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
    """Submitted by a script, as from a shell."""

    name = "huey, script"
    record = "SQLite, synced"
    is_durable = True
    waits_inside = True
    is_slow = True
    waiter = "polls, 0.1 s growing to 1 s"
    short_tasks = 50
    records = 0  # its list is that of the API, below
    _server: Server | None = None

    @classmethod
    def missing(cls) -> str | None:
        """It comes with the `bench` extra."""
        return None if importlib.util.find_spec("huey") else "not installed: huey from PyPI"

    def start(self, slots: int) -> None:
        """A consumer with a thread per task."""
        from peers.huey_queue import open_queue  # noqa: PLC0415 - may not be installed

        self._database = f"{self.place}/queue.sqlite"
        self._queue, self._run_command = open_queue(self._database)
        argv = ["python", _PROGRAM, "consume", self._database, str(slots)]
        self._server = Server(argv, self.env, self.place / "consumer.out")
        self.wait(self.submit(["true"]))

    def stop(self) -> None:
        """By its own pid; an interrupt lets it finish what runs."""
        if self._server:
            self._server.end(signal.SIGKILL)

    def revive(self, slots: int) -> None:
        """Another consumer on the same file."""
        self.stop()
        self.start(slots)

    def submit(self, argv: Sequence[str]) -> str:
        """A fresh interpreter that enqueues."""
        return self.run("python", _PROGRAM, "submit", self._database, *argv)

    def submit_many(self, argv: Sequence[str], count: int) -> list[str]:
        """From this program, where time does not count."""
        return [str(self._run_command(list(argv)).id) for _ in range(count)]

    def wait(self, ticket: str, patience: float = PATIENCE) -> str:
        """Its own blocking read, which looks, sleeps and looks again."""
        from huey.exceptions import ResultTimeout  # type: ignore[import-untyped]  # noqa: PLC0415

        try:
            self._queue.result(ticket, blocking=True, timeout=patience, preserve=True)
        except ResultTimeout:
            return "blocked"
        return "told"

    def finished(self) -> int:
        """Results in the store."""
        return int(self._queue.result_count())

    def code(self, ticket: str) -> int | None:
        """The first half of the result."""
        result = self._queue.result(ticket, preserve=True)
        return None if result is None else result[0]

    def output(self, ticket: str) -> str:
        """The second half."""
        result = self._queue.result(ticket, preserve=True)
        return "" if result is None else result[1]

    def show_all(self) -> None:
        """It has no command for this; a program can ask for every result at once."""
        self._queue.all_results()

    def guards(self, task: int) -> list[Guard]:
        """The consumer is the parent of everything."""
        del task
        return [Guard("consumer", (self._server.pid if self._server else 0,))]


class HueyApi(HueyCold):
    """Submitted from a running program: the command does not run yet when the call returns."""

    name = "huey, API"
    is_warm = True
    short_tasks = 1000
    records = 1000

    def submit(self, argv: Sequence[str]) -> str:
        """Enqueue."""
        return str(self._run_command(list(argv)).id)

    def fill(self, count: int) -> None:
        """As ever; but by now the consumer may be asleep for ten seconds."""
        for _ in range(count - self.finished()):
            self.submit(["true"])
        until(lambda: self.finished() >= count, f"{self.name}: {count} records", patience=2 * PATIENCE)

"""Outlive as a measured tool: by its command line, and by its SDK."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from measure import PATIENCE, parent_of, pids_holding, pids_mentioning

from outlive import Outlive
from outlive.bundle.home import open_home
from outlive.ledger.contract import Selection
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from peers.protocol import Guard, Peer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class OutliveCli(Peer):
    """Outlive with its commands `outlive run`, `outlive wait` and `outlive list`."""

    name = "Outlive, CLI"
    record = "SQLite and a file per task, synced"
    is_durable = True
    short_tasks = 200
    records = 0  # the stage that measures lists fills ledgers of its own, up to 100,000 records

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.env["OUTLIVE_HOME"] = str(place / "state")
        self._submitted = 0

    def submit(self, argv: Sequence[str]) -> str:
        """Run `outlive run`, and return the id of the task that it prints.

        The id is printed when the command runs and the task is recorded durably.
        """
        self._submitted += 1
        return self.run("outlive", "run", "--", *argv)

    def wait(self, ticket: str, patience: float = PATIENCE) -> str:
        """Run `outlive wait`.

        Exit code 1 means that the task failed. That is a valid result, and no error of `outlive wait`.
        """
        heard = self.hear("outlive", "wait", ticket, patience=patience)
        return "told" if heard.startswith("error 1:") else heard

    def finished(self) -> int:
        """Return how many of the submitted tasks have ended.

        While tasks run, this is the number of submitted tasks minus those that run. Otherwise, the ended tasks in the
        ledger are counted.
        """
        with SqliteLedger(open_home(self.env).ledger, utc_now()) as ledger:
            if open_ones := len(ledger.unsettled()):
                return self._submitted - open_ones
            return sum(task.current.settled_at is not None for task in ledger.tasks(Selection()))

    def code(self, ticket: str) -> int | None:
        """Return the exit code that the ledger records."""
        return Outlive(home=self.env["OUTLIVE_HOME"]).task(ticket).refresh().exit_code

    def output(self, ticket: str) -> str:
        """Return the output that is stored in the task's bundle."""
        return Outlive(home=self.env["OUTLIVE_HOME"]).task(ticket).output().decode()

    def guards(self, task: int) -> list[Guard]:
        """Return the processes to kill in turn: keeper, witness, and both together.

        The command's parent is the witness, and the witness's parent is the keeper.
        """
        witness = parent_of(task)
        keeper = parent_of(witness)
        return [
            Guard("keeper", (keeper,)),
            Guard("witness", (witness,)),
            Guard("keeper and witness", (keeper, witness)),
        ]

    def pids(self) -> list[int]:
        """Return the keepers and witnesses that have a file in `place` open.

        They cannot be found by their parent, because one spawner process starts the keepers of all ledgers of a
        program.
        """
        return pids_holding(self.env["OUTLIVE_HOME"], "outlive-")


class OutliveSdk(OutliveCli):
    """Outlive with `Outlive().run` and `Task.wait`.

    The first `run` starts the process that launches tasks, and is not measured.
    """

    name = "Outlive, SDK"
    waits_inside = True
    is_warm = True
    short_tasks = 1000

    def start(self, slots: int) -> None:
        """Run a first task. This starts the process that launches tasks.

        That process runs until the benchmark ends.
        """
        del slots
        self._client = Outlive(home=self.env["OUTLIVE_HOME"])
        self.wait(self.submit(["true"]))

    def submit(self, argv: Sequence[str]) -> str:
        """Call `run`, which returns when the command runs and the record is durable."""
        self._submitted += 1
        return self._client.run(argv).id

    def wait(self, ticket: str, patience: float = PATIENCE) -> str:
        """Wait in the benchmark's own process, which sleeps on a FIFO until the task ends."""
        return "told" if self._client.task(ticket).wait(patience).has_ended else "blocked"

    def pids(self) -> list[int]:
        """Return the keepers, the witnesses and the process that launches tasks.

        The last one counts as a server.
        """
        return [*super().pids(), *pids_mentioning("outlive.sdk.spawner.serve_launches", os.getpid())]

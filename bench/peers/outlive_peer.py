"""Outlive itself: by its command line, and through its SDK from a running program."""

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
    """`outlive run`, `outlive wait`, `outlive list`."""

    name = "Outlive, CLI"
    record = "SQLite and a file per task, synced"
    is_durable = True
    short_tasks = 200
    records = 0  # the listing stage fills ledgers of its own, up to 100,000 records

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.env["OUTLIVE_HOME"] = str(place / "state")
        self._submitted = 0

    def submit(self, argv: Sequence[str]) -> str:
        """Prints the id once the command runs and its record is durable."""
        self._submitted += 1
        return self.run("outlive", "run", "--", *argv)

    def wait(self, ticket: str, patience: float = PATIENCE) -> str:
        """Exit code 1 says that the task failed, which is an answer too."""
        heard = self.hear("outlive", "wait", ticket, patience=patience)
        return "told" if heard.startswith("error 1:") else heard

    def finished(self) -> int:
        """What is not unsettled; at the end every record is counted."""
        with SqliteLedger(open_home(self.env).ledger, utc_now()) as ledger:
            if open_ones := len(ledger.unsettled()):
                return self._submitted - open_ones
            return sum(task.current.settled_at is not None for task in ledger.tasks(Selection()))

    def code(self, ticket: str) -> int | None:
        """From the ledger, as any reader sees it."""
        return Outlive(home=self.env["OUTLIVE_HOME"]).task(ticket).refresh().exit_code

    def output(self, ticket: str) -> str:
        """From the bundle."""
        return Outlive(home=self.env["OUTLIVE_HOME"]).task(ticket).output().decode()

    def guards(self, task: int) -> list[Guard]:
        """The command's parent is the witness, whose parent is the keeper."""
        witness = parent_of(task)
        keeper = parent_of(witness)
        return [
            Guard("keeper", (keeper,)),
            Guard("witness", (witness,)),
            Guard("keeper and witness", (keeper, witness)),
        ]

    def pids(self) -> list[int]:
        """Keepers and witnesses, by the files they hold: one spawner serves every home of a program."""
        return pids_holding(self.env["OUTLIVE_HOME"], "outlive-")


class OutliveSdk(OutliveCli):
    """`Outlive().run` and `Task.wait`; the first run, which starts the spawner, is not counted."""

    name = "Outlive, SDK"
    waits_inside = True
    is_warm = True
    short_tasks = 1000

    def start(self, slots: int) -> None:
        """Start the spawner by a first run. It lives as long as this program."""
        del slots
        self._client = Outlive(home=self.env["OUTLIVE_HOME"])
        self.wait(self.submit(["true"]))

    def submit(self, argv: Sequence[str]) -> str:
        """Returns once the command runs and its record is durable."""
        self._submitted += 1
        return self._client.run(argv).id

    def wait(self, ticket: str, patience: float = PATIENCE) -> str:
        """Asleep on a FIFO, in this program."""
        return "told" if self._client.task(ticket).wait(patience).has_ended else "blocked"

    def pids(self) -> list[int]:
        """The spawner, a child of this program, stands for a server."""
        return [*super().pids(), *pids_mentioning("outlive.client.spawner", os.getpid())]

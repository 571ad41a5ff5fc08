"""pm2: a Node.js daemon. A process of the benchmark listens to the daemon."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import PATIENCE, is_alive, until

from peers.lines import Lines
from peers.protocol import Guard, Peer

if TYPE_CHECKING:
    from collections.abc import Sequence

_MODULE = Path(__file__).parent.parent / ".peers" / "node_modules" / "pm2"
_PM2 = str(_MODULE / "bin" / "pm2")
_LISTENER = """
const pm2 = require(process.argv[1]);
pm2.connect(() => pm2.launchBus((_, bus) => {
    console.log("listening");
    bus.on("process:event", told => { if (told.event === "exit") console.log(told.process.name); });
}));
"""


class Pm2(Peer):
    """pm2, which is made for services. A task is an application without restarts."""

    name = "pm2"
    programs = ("node",)
    record = "in the server's memory"
    waits_inside = True
    is_slow = True
    waiter = "blocked on its bus"
    short_tasks = 50
    records = 0  # pm2 needs a third of a second for a task, so a thousand would take longer than a minute
    _server = 0
    _listener: subprocess.Popen[bytes] | None = None

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.env["PM2_HOME"] = str(place)
        self._count = 0

    @classmethod
    def missing(cls) -> str | None:
        """Return why pm2 cannot be measured. Return None if it is installed.

        `make bench` installs pm2 into `bench/.peers`.
        """
        return super().missing() or (None if _MODULE.exists() else "not installed: npm package pm2")

    def start(self, slots: int) -> None:
        """Start pm2's daemon, and a process that listens to the daemon's events.

        Any call of pm2 starts the daemon.
        """
        del slots
        self.run(_PM2, "ping")
        self._server = int((self.place / "pm2.pid").read_text())
        self._listener = subprocess.Popen(
            [shutil.which("node") or "node", "-e", _LISTENER, str(_MODULE)], env=self.env, stdout=subprocess.PIPE
        )
        assert self._listener.stdout is not None  # noqa: S101 - this tells the type checker that stdout is a pipe
        self._lines = Lines(self._listener.stdout.fileno())
        self._lines.await_name("listening", PATIENCE)

    def stop(self) -> None:
        """End the listening process and pm2's daemon by their process ids."""
        if self._listener:
            self._listener.kill()
            self._listener.wait()
        if self._server and is_alive(self._server):
            os.kill(self._server, signal.SIGTERM)
            until(lambda: not is_alive(self._server), "the end of pm2's daemon")

    def revive(self, slots: int) -> None:
        """Start a new daemon, which does not know the applications of the former daemon."""
        self.stop()
        self.start(slots)

    def submit(self, argv: Sequence[str]) -> str:
        """Run `pm2 start`, with `--silent` so that it does not list all applications."""
        ticket = self._name()
        log = f"{self.place}/{ticket}.out"
        self.run(
            _PM2, "start", "--silent", "--no-autorestart", "--interpreter", "none", "--name", ticket,
            "--output", log, "--error", log, argv[0], *(["--", *argv[1:]] if argv[1:] else []),
        )  # fmt: skip
        return ticket

    def submit_many(self, argv: Sequence[str], count: int) -> list[str]:
        """Start all commands with one configuration file."""
        names = [self._name() for _ in range(count)]
        fixed = {"script": argv[0], "args": list(argv[1:]), "interpreter": "none", "autorestart": False}
        path = self.place / "many.json"
        path.write_text(json.dumps({"apps": [{"name": name, **fixed} for name in names]}))
        self.run(_PM2, "start", "--silent", str(path))
        return names

    def _name(self) -> str:
        self._count += 1
        return f"p{self._count}"

    def wait(self, ticket: str, patience: float = PATIENCE) -> str:
        """Wait until pm2's daemon reports the end of the task."""
        return self._lines.await_name(ticket, patience)

    def finished(self) -> int:
        """Return the number of applications whose state in pm2 is stopped."""
        return sum(each["pm2_env"]["status"] == "stopped" for each in self._applications())

    def code(self, ticket: str) -> int | None:
        """Return the exit code that pm2's daemon remembers."""
        codes: list[int] = [
            each["pm2_env"]["exit_code"]
            for each in self._applications()
            if each["name"] == ticket and each["pm2_env"]["status"] == "stopped"
        ]
        return codes[0] if codes else None

    def _applications(self) -> list[dict[str, Any]]:
        printed = self.run(_PM2, "jlist")
        found: list[dict[str, Any]] = json.loads(printed[printed.index("[") :])
        return found

    def output(self, ticket: str) -> str:
        """Return the log file of the application, which pm2's daemon writes."""
        path = self.place / f"{ticket}.out"
        return path.read_text() if path.exists() else ""

    def guards(self, task: int) -> list[Guard]:
        """Return pm2's daemon, which is the parent of all tasks."""
        del task
        return [Guard("daemon", (self._server,))]

"""supervisor: a section in its configuration for each task.

An event listener, which supervisor runs as a program, notifies a waiting process.
"""

from __future__ import annotations

import http.client
import os
import shlex
import signal
import socket
import sys
import xmlrpc.client
from typing import TYPE_CHECKING, Any

from measure import PATIENCE, until

from peers.lines import Lines
from peers.protocol import Guard, Peer, Server

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_CONFIG = """
[unix_http_server]
file={place}/socket
[supervisord]
logfile={place}/log
pidfile={place}/pid
childlogdir={place}
nodaemon=true
[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
[supervisorctl]
serverurl=unix://{place}/socket
[eventlistener:told]
command={python} -I -S {place}/told.py
events=PROCESS_STATE_EXITED
[include]
files={place}/*.program
"""
_PROGRAM = """
[program:{name}]
command={command}
autorestart=false
startsecs=0
stdout_logfile={place}/{name}.out
redirect_stderr=true
"""
# supervisor's protocol: the listener writes READY, then reads a line of fields and as many bytes as the field `len`
# says, and then writes OK.
_LISTENER = """
import os, sys
told = os.open(os.path.join(os.path.dirname(__file__), "told"), os.O_WRONLY)
while True:
    os.write(1, b"READY\\n")
    fields = dict(field.split(":") for field in sys.stdin.readline().split())
    event = dict(field.split(":") for field in sys.stdin.read(int(fields["len"])).split())
    os.write(told, event["processname"].encode() + b"\\n")
    os.write(1, b"RESULT 2\\nOK")
"""


class Supervisor(Peer):
    """supervisor, which is made for services.

    It has no command to submit a task or to wait for one. So this class writes a section of the configuration per task,
    and listens to supervisor's events.
    """

    name = "supervisor"
    programs = ("supervisord", "supervisorctl")
    record = "in the server's memory, and its log"
    waits_inside = True
    is_slow = True
    waiter = "blocked on an event listener"
    short_tasks = 50
    running_tasks = 20  # the command `update` takes a second for each task
    records = 0  # supervisor needs a second for ten tasks, so a thousand would take longer than a minute
    _server: Server | None = None

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self._count = 0
        os.mkfifo(place / "told")
        (place / "told.py").write_text(_LISTENER)
        (place / "config").write_text(_CONFIG.format(place=place, python=sys.executable))
        self._lines = Lines(os.open(place / "told", os.O_RDWR))

    def start(self, slots: int) -> None:
        """Start the server in the foreground, as a child of this process."""
        del slots
        self._server = Server(["supervisord", "-c", f"{self.place}/config"], self.env, self.place / "server.out")
        until(self._answers, "supervisord")

    def _answers(self) -> bool:
        try:
            return bool(self._ask().supervisor.getState()["statename"] == "RUNNING")
        except OSError:
            return False

    def stop(self) -> None:
        """End the server by its process id. The server ends the programs that it runs."""
        if self._server:
            self._server.end(signal.SIGTERM)

    def revive(self, slots: int) -> None:
        """Start the server again.

        The server then starts every configured program, even a program that has ended.
        """
        self.stop()
        self.start(slots)

    def submit(self, argv: Sequence[str]) -> str:
        """Write a section of the configuration for the command, and update supervisor."""
        ticket = self._write(argv)
        self.run("supervisorctl", "-c", f"{self.place}/config", "update")
        return ticket

    def submit_many(self, argv: Sequence[str], count: int) -> list[str]:
        """Write a section of the configuration per command, and update supervisor once."""
        tickets = [self._write(argv) for _ in range(count)]
        self.run("supervisorctl", "-c", f"{self.place}/config", "update")
        return tickets

    def _write(self, argv: Sequence[str]) -> str:
        self._count += 1
        name = f"p{self._count}"
        command = shlex.join(argv).replace("%", "%%")
        text = _PROGRAM.format(name=name, command=command, place=self.place)
        (self.place / f"{name}.program").write_text(text)
        return name

    def wait(self, ticket: str, patience: float = PATIENCE) -> str:
        """Wait until the event listener writes the task's name into a FIFO."""
        return self._lines.await_name(ticket, patience)

    def finished(self) -> int:
        """Return the number of programs in the state EXITED.

        Each call makes the server check its programs, so call this rarely.
        """
        return sum(each["statename"] == "EXITED" for each in self._ask().supervisor.getAllProcessInfo())

    def code(self, ticket: str) -> int | None:
        """Return the exit code that the server has recorded.

        For a running program the server returns 0, so the program's state is checked first.
        """
        found = self._ask().supervisor.getProcessInfo(ticket)
        return found["exitstatus"] if found["statename"] == "EXITED" else None

    def output(self, ticket: str) -> str:
        """Return the log file of the program, which the server writes."""
        return (self.place / f"{ticket}.out").read_text()

    def guards(self, task: int) -> list[Guard]:
        """Return the supervisor server, which is the parent of all tasks."""
        del task
        return [Guard("server", (self._server.pid if self._server else 0,))]

    def _ask(self) -> Any:
        return xmlrpc.client.ServerProxy("http://localhost", transport=_Local(f"{self.place}/socket"))


class _Local(xmlrpc.client.Transport):
    """An XML-RPC transport over a Unix socket, so that no network port is opened."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def make_connection(self, host: Any) -> http.client.HTTPConnection:
        """Return a connection to the Unix socket, whose path is given as the host."""
        del host
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(self._path)
        return connection

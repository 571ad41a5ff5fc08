"""tmux: a window per task in a session without a terminal.

The window's shell writes the exit code to a file. A `tmux wait-for` channel notifies a waiting process.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from measure import PATIENCE, is_alive, until

from peers.protocol import Guard, Peer
from peers.setsid import Setsid

if TYPE_CHECKING:
    from collections.abc import Sequence


class Tmux(Setsid):
    """tmux, which users often tell coding agents to use.

    The record of a task is a file that the shell writes, as with `setsid`.
    """

    name = "tmux, rc file"
    programs = ("tmux",)
    waiter = "blocked"
    records = 0  # tmux does not list windows that have closed, so it has no list of ended tasks
    _server = 0

    def start(self, slots: int) -> None:
        """Start tmux with an idle window. Without a window, tmux would exit between tasks."""
        del slots
        self.env["SHELL"] = "/bin/sh"
        self._call("-f", os.devnull, "new-session", "-d", "-s", "base", "exec sleep infinity")
        self._server = int(self._call("display-message", "-p", "#{pid}"))

    def stop(self) -> None:
        """End the tmux server by its process id."""
        if self._server and is_alive(self._server):
            os.kill(self._server, 15)
            until(lambda: not is_alive(self._server), "the end of tmux's server")

    revive = start

    def _call(self, *words: str) -> str:
        return self.run("tmux", "-S", str(self.place / "socket"), *words)

    def submit(self, argv: Sequence[str]) -> str:
        """Open a window for a command. Its last command notifies the waiting process."""
        self._count += 1
        stem = f"{self.place}/{self._count}"
        socket = self.place / "socket"
        line = f"{shlex.join(argv)}; echo $? >{stem}.rc; tmux -S {socket} wait-for -S {self._count}"
        self._call("new-window", "-d", "-t", "base:", line)
        return stem

    def wait(self, ticket: str, patience: float = PATIENCE) -> str:
        """Wait with `tmux wait-for` until the window's last command has run."""
        channel = ticket.rpartition("/")[2]
        return self.hear("tmux", "-S", str(self.place / "socket"), "wait-for", channel, patience=patience)

    def output(self, ticket: str) -> str:
        """Return an empty string, because tmux discards the output when the window closes."""
        del ticket
        return ""

    def guards(self, task: int) -> list[Guard]:
        """Return the tmux server, which is the only process to kill.

        Killing the server closes the window, and this also ends the window's shell.
        """
        del task
        return [Guard("server", (self._server,))]

    fill = Peer.fill

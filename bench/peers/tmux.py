"""tmux: a window per task in a detached session.

The exit code goes to a file, and a channel of tmux notifies the waiter.
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
    """tmux, which coding agents are often told to use.

    Its record is the file that a shell writes, as with `setsid`.
    """

    name = "tmux, rc file"
    programs = ("tmux",)
    waiter = "blocked"
    records = 0  # a window that has ended is gone from every list
    _server = 0

    def start(self, slots: int) -> None:
        """Start a server with an idle window, which keeps the server alive between tasks."""
        del slots
        self.env["SHELL"] = "/bin/sh"
        self._call("-f", os.devnull, "new-session", "-d", "-s", "base", "exec sleep infinity")
        self._server = int(self._call("display-message", "-p", "#{pid}"))

    def stop(self) -> None:
        """End the server by its process id."""
        if self._server and is_alive(self._server):
            os.kill(self._server, 15)
            until(lambda: not is_alive(self._server), "the end of tmux's server")

    revive = start

    def _call(self, *words: str) -> str:
        return self.run("tmux", "-S", str(self.place / "socket"), *words)

    def submit(self, argv: Sequence[str]) -> str:
        """Open a window whose last command signals the channel of the waiter."""
        self._count += 1
        stem = f"{self.place}/{self._count}"
        socket = self.place / "socket"
        line = f"{shlex.join(argv)}; echo $? >{stem}.rc; tmux -S {socket} wait-for -S {self._count}"
        self._call("new-window", "-d", "-t", "base:", line)
        return stem

    def wait(self, ticket: str, patience: float = PATIENCE) -> str:
        """Wait for the channel's signal."""
        channel = ticket.rpartition("/")[2]
        return self.hear("tmux", "-S", str(self.place / "socket"), "wait-for", channel, patience=patience)

    def output(self, ticket: str) -> str:
        """Return an empty text, because the output is gone with the window."""
        del ticket
        return ""

    def guards(self, task: int) -> list[Guard]:
        """Return the server.

        The shell in the window is not a second guard, because the hang-up of the window kills the shell.
        """
        del task
        return [Guard("server", (self._server,))]

    fill = Peer.fill

"""Steps that tests of sessions share.

The steps start clients, begin sessions and read notices.
"""

from __future__ import annotations

import os
import subprocess
from fcntl import LOCK_NB, LOCK_SH, flock
from typing import TYPE_CHECKING, Any

from outlive.bundle.trace import path_of

if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from tests.support import Bench


class Clients:
    """Processes that play the clients of agents."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self) -> str:
        """Start a client and return its process id."""
        self._started.append(subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL))
        return str(self._started[-1].pid)

    def kill(self, pid: str) -> None:
        """Kill a client with SIGKILL and reap it."""
        one = next(each for each in self._started if str(each.pid) == pid)
        one.kill()
        one.wait()

    def kill_all(self) -> None:
        """Kill and reap every client at the end of the test."""
        for each in self._started:
            each.kill()
            each.wait()


def begin(bench: Bench, session: str, *options: str, **more: Any) -> Any:
    """Begin a session and return the JSON that the command prints."""
    return bench.json("session", "begin", "--session", session, *options, **more)


def told(bench: Bench, session: str, *options: str, **more: Any) -> list[str]:
    """Return the ids of the tasks whose endings the inbox of a session reports."""
    found = bench.json("inbox", "--session", session, *options, **more)["notices"]
    return [notice["task"]["id"] for notice in found]


def ended(bench: Bench, session: str, text: str = "true", *options: str) -> str:
    """Launch a task of a session, wait for its end, and return its id."""
    task = bench.launch(text, "--session", session, *options)
    bench.run("wait", task)
    return task


def until(name: str) -> str:
    """Return a shell command line that waits until a file of this name exists."""
    return f"while ! [ -e {name} ]; do sleep 0.02; done"


def is_watched(home: Home, session: str) -> bool:
    """Return whether a process waits to wake the session when a task ends."""
    name = os.path.basename(path_of(home, session)).removesuffix(".jsonl")
    try:
        fd = os.open(f"{home.path}/hooks/{name}.watch", os.O_RDWR)
    except OSError:
        return False
    try:
        flock(fd, LOCK_SH | LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False

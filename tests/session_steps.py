"""Steps that tests of sessions share: clients that live and die, beginnings, and what is told."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.support import Bench


class Clients:
    """Processes that stand for agents' clients."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self) -> str:
        """A client; its process id."""
        self._started.append(subprocess.Popen(["sleep", "600"]))
        return str(self._started[-1].pid)

    def kill(self, pid: str) -> None:
        """SIGKILL one, and reap it."""
        one = next(each for each in self._started if str(each.pid) == pid)
        one.kill()
        one.wait()

    def kill_all(self) -> None:
        """The end of the test."""
        for each in self._started:
            each.kill()
            each.wait()


def begin(bench: Bench, session: str, *options: str, **more: Any) -> Any:
    """A session begins; the JSON of it."""
    return bench.json("session", "begin", "--session", session, *options, **more)


def told(bench: Bench, session: str, *options: str, **more: Any) -> list[str]:
    """The ids of the tasks that a session is told of now."""
    found = bench.json("inbox", "--session", session, *options, **more)["notices"]
    return [notice["task"]["id"] for notice in found]


def ended(bench: Bench, session: str, text: str = "true", *options: str) -> str:
    """A task of a session that has ended."""
    task = bench.launch(text, "--session", session, *options)
    bench.run("wait", task)
    return task


def until(name: str) -> str:
    """A line of shell that goes on once a file of this name is there."""
    return f"while ! [ -e {name} ]; do sleep 0.02; done"

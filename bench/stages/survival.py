"""The stage that kills the processes that look after a running task, with SIGKILL.

It measures no times. It finds out whether the task survives, whether its true exit code and its whole output are
available once the tool's server runs again, and whether a waiting process was notified.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from measure import is_alive, until
from peers.protocol import which

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from peers.protocol import Peer

_LENGTH = 1.5
_CODE = 7
_ASLEEP = 0.5
_PATIENCE = 4.0
_REVIVED = 1.0


class Fate(NamedTuple):
    """What happened to a task after one kill, in short phrases for the result table."""

    peer: str
    killed: str
    task: str
    code: str
    output: str
    waiter: str


def survival(kinds: Sequence[type[Peer]], place: Path, say: Callable[[str], None]) -> list[Fate]:
    """For each peer, kill each process that looks after a task, once.

    A new server is started before each kill.
    """
    fates = []
    for kind in kinds:
        number = 0
        while True:
            peer = kind(place / f"kill-{number}-{kind.__name__}")
            peer.start(1)
            try:
                say(f"SIGKILL {number + 1}: {kind.name}")
                fate, guards = _kill(peer, number)
            finally:
                peer.stop()
            fates.append(fate)
            number += 1
            if number == guards:
                break
    return fates


def _kill(peer: Peer, number: int) -> tuple[Fate, int]:
    runs, ends = peer.place / "runs", peer.place / "ends"
    script = f"echo $$ >>{runs}; echo before; sleep {_LENGTH}; echo after; echo >{ends}; exit {_CODE}"
    ticket = peer.submit([which("sh"), "-c", script])
    until(lambda: runs.exists() and runs.read_text().endswith("\n"), f"{peer.name}: a task to kill")
    task = int(runs.read_text())
    guards = peer.guards(task)
    waiting = _Waiting(peer, ticket)
    time.sleep(_ASLEEP)
    for pid in guards[number].pids:
        os.kill(pid, signal.SIGKILL)
    time.sleep(_LENGTH / 3)
    is_left = is_alive(task)
    until(lambda: not is_alive(task), f"{peer.name}: the end of the task")
    # If the output goes through a pipe to the killed process, the task gets SIGPIPE when it writes next, and ends.
    life = "lives to its end" if ends.exists() else "dies when it writes" if is_left else "killed with it"
    heard = waiting.heard(time.monotonic())
    peer.revive(1)
    time.sleep(_REVIVED)
    code, output = _asked(lambda: peer.code(ticket)), _asked(lambda: peer.output(ticket))
    again = len(runs.read_text().split()) > 1
    fate = Fate(
        peer.name,
        guards[number].name,
        life,
        _code_in_words(code) + ("; the task was run again" if again else ""),
        _output_in_words(output),
        heard,
    )
    return fate, len(guards)


def _asked(ask: Callable[[], object]) -> object:
    """Return what a tool reports about a task, or None if the call raises an error.

    A tool that has forgotten the task may raise any error.
    """
    try:
        return ask()
    except Exception:  # noqa: BLE001 - the tool may raise any error, and every error means that it reports nothing
        return None


def _code_in_words(code: object) -> str:
    if code is None:
        return "lost"
    return "true" if code == _CODE else f"false: {code}"


def _output_in_words(output: object) -> str:
    lines = str(output).split("\n") if output else []
    if "after" in lines:
        return "kept"
    return "in part" if "before" in lines else "lost"


class _Waiting:
    """A thread that waits for a task by the peer's own way to wait."""

    def __init__(self, peer: Peer, ticket: str) -> None:
        self._answer = ""
        self._at = 0.0
        self._thread = threading.Thread(target=self._wait, args=(peer, ticket))
        self._thread.start()

    def _wait(self, peer: Peer, ticket: str) -> None:
        try:
            self._answer = peer.wait(ticket, _PATIENCE)
        except Exception as error:  # noqa: BLE001 - whatever error the tool raises is the result of the wait
            self._answer = f"error: {error}"
        self._at = time.monotonic()

    def heard(self, ended: float) -> str:
        """Return a phrase for the result of the wait, such as `told` or `an error`.

        `ended` is the time when the task ended.
        """
        self._thread.join()
        if self._answer == "blocked":
            return "blocked"
        kind = "told" if self._answer == "told" else "an error"
        return f"{kind}, before the end" if self._at < ended - 0.1 else kind

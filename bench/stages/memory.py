"""The stage that measures how much memory a tool needs for each running task.

The memory of the task's own command and of an idle server is not included.
"""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, NamedTuple

from measure import pids_running, pss_kb, until
from peers.protocol import which

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from peers.protocol import Peer

_SETTLING = 0.5


class Memory(NamedTuple):
    """The memory (PSS in kB) of an idle server, and the added memory per running task."""

    tasks: int
    base_kb: float
    task_kb: float


def memory(kinds: Sequence[type[Peer]], place: Path, share: float, say: Callable[[str], None]) -> dict[str, Memory]:
    """Measure the peers one after the other.

    Each peer is started so that all tasks of the measurement can run at once.
    """
    found = {}
    for number, kind in enumerate(kinds):
        count = max(5, int(kind.running_tasks * share))
        say(f"memory of {count} running tasks: {kind.name}")
        peer = kind(place / f"memory-{kind.__name__}")
        try:
            peer.start(count)
            found[kind.name] = _measure(peer, count, [which("sleep"), f"300.{os.getpid()}{number:02d}"])
        finally:
            peer.stop()
    return found


def _measure(peer: Peer, count: int, argv: list[str]) -> Memory:
    base = sum(map(pss_kb, peer.pids()))
    peer.submit_many(argv, count)
    try:
        until(lambda: len(pids_running(argv)) >= count, f"{peer.name}: {count} running tasks", pause=0.1)
        time.sleep(_SETTLING)
        tasks = set(pids_running(argv))
        total = sum(pss_kb(pid) for pid in peer.pids() if pid not in tasks)
    finally:
        for pid in pids_running(argv):
            os.kill(pid, signal.SIGKILL)
        until(lambda: not pids_running(argv), f"{peer.name}: the end of its tasks")
    return Memory(count, base, (total - base) / count)

"""The stage that measures the memory that observing file changes adds.

It measures the keeper and witness of an idle task, and of a task that has changed many files. The tasks run in a git
repository. There, the keeper needs more memory, because it remembers the former content of each changed file.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from typing import TYPE_CHECKING, NamedTuple

from measure import pids_holding, pss_kb, until
from peers.protocol import which

from outlive import Outlive

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from outlive.domain.tasks.task import Observe

GOAL_KB = 10 * 1024
FILES = 20_000
_ROUNDS = 3
_SETTLING = 0.5
_MANY = f"i=0; while [ $i -lt {FILES} ]; do : > f$i; i=$((i + 1)); done"


class Added(NamedTuple):
    """The PSS (memory) in kB that observing adds to keeper and witness together."""

    idle_kb: float
    busy_kb: float


def observing_memory(place: Path, say: Callable[[str], None]) -> Added:
    """Measure the memory of one task at a time.

    The command that launched the task has ended before the measurement. PSS divides shared pages among processes, so a
    running launcher would hide a part of the keeper's memory.
    """
    say(f"observing: memory, idle and after {FILES:,} files")
    home = place / "observing-memory"
    env = {**os.environ, "OUTLIVE_HOME": str(home)}
    client = Outlive(home=str(home))
    ways: tuple[tuple[Observe, str], ...] = (("off", ":"), ("syscalls", ":"), ("syscalls", _MANY))
    found: tuple[list[int], ...] = tuple([] for _ in ways)
    for number in range(_ROUNDS):
        for way, (how, work) in enumerate(ways):
            repo = place / f"observing-memory-{number}-{way}"
            subprocess.run(["git", "init", "-q", repo], check=True)
            words = ["run", "--observe", how, f"{work}; echo ready; exec sleep 300"]
            launched = subprocess.run([which("outlive"), *words], cwd=repo, env=env, check=True, capture_output=True)
            task = client.task(launched.stdout.decode().strip())
            until(lambda task=task: b"ready" in task.output(), "a task that has done its work")  # type: ignore[misc]
            time.sleep(_SETTLING)
            found[way].append(sum(map(pss_kb, pids_holding(str(home), "outlive-"))))
            task.cancel()
            until(lambda: not pids_holding(str(home), "outlive-"), "the end of its keeper")
    plain, idle, busy = (statistics.median(each) for each in found)
    return Added(idle - plain, busy - plain)

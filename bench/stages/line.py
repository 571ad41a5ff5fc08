"""The stage that runs fifty tasks of which four may run at once.

It checks that never more than four run, that they start in order, and that the keepers of waiting tasks do not poll.
"""

from __future__ import annotations

import itertools
import os
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from measure import pids_holding, pss_kb

from outlive import Outlive

if TYPE_CHECKING:
    from collections.abc import Callable

    from outlive import Task

_TASKS, _ROOM, _EACH_S = 50, 4, 4.6


class Queued(NamedTuple):
    """The results of running fifty tasks of which four may run at once."""

    seconds: float
    most_at_once: int
    is_in_order: bool
    wakes: int
    waiting_kb: float


def line(home: Path, share: float, say: Callable[[str], None]) -> Queued:
    """Run the tasks, and measure the keepers of waiting tasks while no task ends.

    How many tasks ran at once, and in which order, is read from the ledger afterwards.
    """
    say(f"{_TASKS} tasks over {_ROOM} slots")
    client = Outlive(home=str(home))
    began = time.monotonic()
    tasks = [client.run(["sleep", str(_EACH_S * share)], slots={"x": _ROOM}) for _ in range(_TASKS)]
    time.sleep(0.5 * share)
    waiting = [pid for pid in pids_holding(str(home), "outlive-keeper") if "load_keeper" in _command_line(pid)]
    before = [_switches(pid) for pid in waiting]
    memory = sum(map(pss_kb, waiting)) / max(1, len(waiting))
    quiet = max(0.0, _EACH_S * share - (time.monotonic() - began) - 0.3)
    time.sleep(quiet)
    wakes = sum(_switches(pid) for pid in waiting) - sum(before)
    client.wait(*tasks)
    starts = [_moment(task, "started_at") for task in tasks]
    return Queued(
        seconds=time.monotonic() - began,
        most_at_once=_most_at_once(tasks),
        is_in_order=starts == sorted(starts),
        wakes=wakes,
        waiting_kb=memory,
    )


def _most_at_once(tasks: list[Task]) -> int:
    """Return the largest number of tasks that ran at the same time, from the ledger.

    If one task ends at the same time as another begins, they do not count as running together.
    """
    steps = [(_moment(task, "started_at"), 1) for task in tasks] + [(_moment(task, "ended_at"), -1) for task in tasks]
    return max(itertools.accumulate(step for _, step in sorted(steps)))


def _moment(task: Task, name: Literal["started_at", "ended_at"]) -> datetime:
    found = task.as_dict()[name]
    if found is None:
        raise RuntimeError(f"task {task.id} has no {name}")
    return datetime.fromisoformat(found)


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return ""


def _switches(pid: int) -> int:
    """Return how often a process has given up the processor in order to wait."""
    if not os.path.exists(f"/proc/{pid}/status"):
        return 0
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))

"""The stage that measures many short tasks.

`true` is submitted many times in a row, without waiting for a task. The time ends when all tasks are recorded as ended.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from measure import spawn, until

from stages.launch import TRUE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from peers.protocol import Peer

_FLOOR = 200


class Rate(NamedTuple):
    """The number of short tasks, and the milliseconds per task.

    `floor_ms` is the time to start `true` without any tool, measured just before.
    """

    tasks: int
    ms: float
    floor_ms: float


def throughput(
    peers: Sequence[Peer], env: Mapping[str, str], share: float, say: Callable[[str], None]
) -> dict[str, Rate]:
    """Measure one peer after the other.

    The peers do not take turns, so that each of them has the whole machine.
    """
    rates = {}
    for peer in peers:
        count = max(10, int(peer.short_tasks * share))
        say(f"{count} short tasks: {peer.name}")
        began = time.perf_counter()
        for _ in range(_FLOOR):
            spawn([TRUE], env)
        floor = (time.perf_counter() - began) / _FLOOR
        goal = peer.finished() + count
        began = time.perf_counter()
        for _ in range(count):
            peer.submit([TRUE])
        until(lambda: peer.finished() >= goal, f"{peer.name}: {count} records", pause=0.05)  # noqa: B023 - the lambda runs at once
        rates[peer.name] = Rate(count, (time.perf_counter() - began) / count * 1000, floor * 1000)
    return rates

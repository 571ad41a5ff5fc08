"""The stage that measures `list` with 1,000, 10,000 and 100,000 recorded tasks.

For Outlive, it measures the whole command, and also only the database query inside a process.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

import apsw
from measure import Samples, spawn
from peers.protocol import which

from outlive import Outlive
from outlive.bundle.home import open_home
from outlive.ledger.contract import Selection
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from peers.protocol import Peer

SIZES = (1_000, 10_000, 100_000)
_CALLS = 15
_QUERIES = 400

# Copy one real task, so that the copied table rows and their index entries have a realistic size.
_COPIES = """
    WITH RECURSIVE copy (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copy WHERE n < ?)
    INSERT INTO {table} ({columns}) SELECT {cells} FROM {table}, copy WHERE {table}.{key} = ?"""
_NAME = "printf('t%07d', n)"


class Listing(NamedTuple):
    """The measured times of `list`, by the number of tasks in the ledger.

    `calls` measures the whole command, `queries` only the database query, and `peers` the lists of the other tools.
    """

    bare: Samples
    calls: dict[int, Samples]
    queries: dict[int, Samples]
    peers: dict[str, dict[int, Samples]]


def listing(peers: Sequence[Peer], place: Path, share: float, say: Callable[[str], None]) -> Listing:
    """Measure Outlive with all ledger sizes in turns, and then the peers.

    The goal is a ratio of two sizes, and noise affects calls close in time alike.
    """
    envs = {}
    for size in SIZES:
        say(f"list: a ledger of {size:,} records")
        envs[size] = {**os.environ, "OUTLIVE_HOME": str(place / f"list-{size}")}
        _fill(envs[size], size)
    say("list: Outlive")
    calls = max(3, int(_CALLS * share))
    found = Listing(Samples(), {size: Samples() for size in SIZES}, _queries(envs), {})
    for _ in range(calls):
        found.bare.add(_timed(lambda: spawn([sys.executable, "-I", "-c", "pass"], os.environ)))
        for size, env in envs.items():
            found.calls[size].add(_timed(lambda: spawn([which("outlive"), "list"], env)))  # noqa: B023 - the lambda runs at once
    for peer in peers:
        found.peers[peer.name] = {}
        for size in SIZES:
            if size <= peer.records * share:
                say(f"list among {size:,}: {peer.name}")
                _list(peer, size, calls, found.peers[peer.name])
    return found


def _list(peer: Peer, size: int, calls: int, found: dict[int, Samples]) -> None:
    try:
        peer.fill(size)
    except TimeoutError:
        return
    found[size] = Samples()
    for _ in range(calls):
        found[size].add(_timed(peer.show_all))


def _fill(env: Mapping[str, str], size: int) -> None:
    """Run one real task, and copy its database rows under the ids of other tasks."""
    task = Outlive(home=env["OUTLIVE_HOME"]).run(["true"]).wait().id
    ledger = apsw.Connection(open_home(env).ledger)
    with ledger:
        for table, key in (("task", "id"), ("attempt", "task"), ("evidence", "task"), ("notice", "task")):
            columns = [row[1] for row in ledger.execute(f"PRAGMA table_info({table})") if row[1] != "seq"]
            fresh = {"id": _NAME if table == "task" else "printf('n%07d', n)", "task": _NAME}
            cells = ", ".join(fresh.get(column, column) for column in columns)
            text = _COPIES.format(table=table, columns=", ".join(columns), cells=cells, key=key)
            ledger.execute(text, (size - 1, task))
    if (count := next(ledger.execute("SELECT count(*) FROM task"))[0]) != size:
        raise RuntimeError(f"the ledger of {size} records has {count}")
    ledger.close()


def _queries(envs: Mapping[int, Mapping[str, str]]) -> dict[int, Samples]:
    """Measure the database query of `list` in this process.

    The ledgers stay open between the queries.
    """
    ledgers = {size: SqliteLedger(open_home(env).ledger, utc_now()) for size, env in envs.items()}
    samples = {size: Samples() for size in envs}
    project = ledgers[SIZES[0]].tasks(Selection(limit=1))[0].launch.project
    for _ in range(_QUERIES):
        for size, ledger in ledgers.items():
            samples[size].add(_timed(lambda: ledger.tasks(Selection(project=project, limit=20))))  # noqa: B023 - the lambda runs at once
    for ledger in ledgers.values():
        ledger.close()
    return samples


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began

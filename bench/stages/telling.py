"""The stage that measures `inbox`, `gate` and `hand-off`.

These commands are measured in a small and in a large ledger, with the same session. The session has three pending
notices and one running task. Five earlier sessions have ended without a successor, and each has one pending notice. The
time is that of the function call inside this process.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

import apsw
from measure import Samples

from outlive import Outlive
from outlive.bundle.home import open_home
from outlive.service.notices.inbox import peek
from outlive.service.notices.tell_unheard import peek_at_earlier
from outlive.service.sessions.gate import gate
from outlive.service.sessions.hand_off import hand_off

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

FEW, MANY = (100, 10), (100_000, 10_000)
VERBS = ("inbox", "gate", "hand-off")
_CALLS = 60
_ME = "the-session"

_SESSIONS = """
    WITH RECURSIVE copy (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copy WHERE n < :sessions)
    INSERT INTO session (seq, id, project, lineage, created_at, rank, ended_at)
    SELECT 1000 + n, printf('other-%d', n), project, printf('l%07d', n), created_at, n, created_at
    FROM session, copy WHERE id = :me"""
_COPIES = """
    WITH RECURSIVE copy (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copy WHERE n < :tasks)
    INSERT INTO {table} ({columns}) SELECT {cells} FROM {table}, copy WHERE {table}.{key} = :model"""
_FRESH = {
    "task": {
        "id": "printf('t%07d', n)",
        "origin": "1001 + n % :sessions",
        "session": "printf('other-%d', n % :sessions)",
    },
    "attempt": {"task": "printf('t%07d', n)"},
    "notice": {
        "id": "printf('nt%07d01ended', n)",
        "task": "printf('t%07d', n)",
        "origin": "1001 + n % :sessions",
        "state": "iif(n <= 5, 'pending', 'acked')",
    },
}


class Tellings(NamedTuple):
    """The measured times by command, in the small ledger and in the large ledger."""

    few: dict[str, Samples]
    many: dict[str, Samples]


def telling(place: Path, share: float, say: Callable[[str], None]) -> Tellings:
    """Measure the small and the large ledger in turns, because the goal is a ratio."""
    found = Tellings({verb: Samples() for verb in VERBS}, {verb: Samples() for verb in VERBS})
    homes = []
    for tasks, sessions in (FEW, MANY):
        say(f"inbox, gate, hand-off: a ledger of {tasks:,} tasks and {sessions:,} sessions")
        homes.append(fill({**os.environ, "OUTLIVE_HOME": str(place / f"told-{tasks}")}, tasks, sessions))
    for _ in range(max(5, int(_CALLS * share))):
        for (env, client), samples in zip(homes, found, strict=True):
            _measure(env, client.session(_ME).project, samples)
    for _, client in homes:
        client.cancel(*client.tasks(all_projects=True, state=("running",), limit=None))
    return found


def _measure(env: Mapping[str, str], project: str, samples: dict[str, Samples]) -> None:
    home = open_home(env)
    samples["inbox"].add(_timed(lambda: peek(home, _ME, project)))
    samples["gate"].add(_timed(lambda: gate(home, _ME, project, None)))
    peeked = peek(home, _ME, project)
    owed, tellings = peeked.owed, peeked.tellings
    if owed is None or len(tellings) != 3:
        raise RuntimeError(f"{len(tellings)} notices are pending instead of 3")
    samples["hand-off"].add(_timed(lambda: hand_off(home, owed, tellings, peek_at_earlier(home, owed))))


def fill(env: Mapping[str, str], tasks: int, sessions: int) -> tuple[Mapping[str, str], Outlive]:
    """Create a real session with real tasks, and copy their database rows many times.

    The copies belong to other sessions.
    """
    client = Outlive(home=env["OUTLIVE_HOME"])
    client.session(_ME).begin(pid=os.getpid())
    ended = [client.run(["true"], session=_ME).wait() for _ in range(3)]
    client.run(["sleep", "3600"], session=_ME)
    ledger = apsw.Connection(open_home(env).ledger)
    names = {"me": _ME, "model": ended[0].id, "tasks": tasks - 4, "sessions": sessions - 1}
    with ledger:
        ledger.execute(_SESSIONS, names)
        for table, fresh in _FRESH.items():
            columns = [row[1] for row in ledger.execute(f"PRAGMA table_info({table})") if row[1] != "seq"]
            cells = ", ".join(fresh.get(column, column) for column in columns)
            key = "id" if table == "task" else "task"
            text = _COPIES.format(table=table, columns=", ".join(columns), cells=cells, key=key)
            ledger.execute(text, names)
    ledger.pragma("wal_checkpoint", "TRUNCATE")  # otherwise the first hook would wait for a checkpoint of a huge log
    ledger.close()
    return env, client


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began

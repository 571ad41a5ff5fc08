"""The content of `schema-1.sqlite`, as values of the domain.

The first release with schema 1 wrote that file, and the file never changes. Every later version must open the file and
read exactly these values. `record` shows how the file was written.
"""

from __future__ import annotations

from datetime import timedelta

import apsw

from outlive.domain.tasks.evidence import Evidence, Intent
from outlive.domain.tasks.settlement import OutputSize, plan_settlement
from outlive.domain.tasks.task import Attempt, History, Launch, LeftRunning, NoticeRow, Task
from outlive.domain.timestamps import UTC, datetime
from outlive.ledger.sqlite import SqliteLedger
from tests.conformance.steps import read_result

_NOW = datetime(2026, 6, 21, 13, 58, 2, 113_047, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_START, _END, _SETTLED = _NOW + _SECOND, _NOW + 40 * _SECOND, _NOW + 41 * _SECOND
_RETAIN = timedelta(days=7)
_LEFT = (LeftRunning(pid=4711, command="sleep \udcff"),)


def _launch(id_: str, **given: object) -> Launch:
    return Launch(
        id=id_,
        command="make test",
        argv=("make", "test"),
        cwd="/home/u/repo",
        project="/home/u/repo",
        host="box",
        created_at=_NOW,
        max_output=64 << 20,
        retain=_RETAIN,
    ).but(**given)


def _attempt(number: int = 1, **given: object) -> Attempt:
    return Attempt(
        number=number,
        state="queued",
        created_at=_NOW,
        boot="6c0b1a52-9a86-4d7e-8f0e-0f4d6c4a7b11",
        pid_namespace=4026531836,
    ).but(**given)


def _ended(state: str, **given: object) -> Attempt:
    return _attempt(
        state=state,
        started_at=_START,
        ended_at=_END,
        settled_at=_SETTLED,
        settled_by="keeper",
        delete_after=_SETTLED + _RETAIN,
        output_dropped=0,
    ).but(**given)


_EXITED = Evidence(kind="exited", seen_by="witness", exit_code=0, at=_END)
_FAILED = _EXITED.but(exit_code=2)
_KILLED = Evidence(kind="signalled", seen_by="witness", signal=15, at=_END)
_GONE = Evidence(
    kind="vanished",
    seen_by="reconciler",
    started="unknown",
    cause="reboot",
    detail="the machine was rebooted",
)
_NO_START = Evidence(
    kind="not_started",
    seen_by="keeper",
    started="no",
    detail="cannot be executed: No such file or directory",
)
_SIZE = OutputSize(written=18_233)

_WHOLE = _launch(
    "tqueued2",
    command="cat caf\udce9 | wc",
    argv=("/bin/sh", "-c", "cat caf\udce9 | wc"),
    cwd="/home/u/\udcff",
    project="/home/u/\udcff",
    description="count the words 漢字",
    session="s-\udce9",
    parent="tended22",
    group="g-1",
    key="k-\udcfe",
    mode="foreground",
    timeout=timedelta(seconds=90, microseconds=7),
    notify="never",
)

# The tasks, in the order in which they were recorded.
TASKS: tuple[Task, ...] = (
    Task(
        launch=_launch("tended22", session="s-1"),
        attempts=(_ended("succeeded", exit_code=0, output_bytes=18_233),),
    ),
    Task(launch=_WHOLE, attempts=(_attempt(),)),
    Task(
        launch=_launch("trunning"),
        attempts=(_attempt(state="running", started_at=_START, condition="stalled"),),
    ),
    Task(
        launch=_launch("tfailed2", session="s-1", notify="failure"),
        attempts=(_ended("failed", exit_code=2, left_running=_LEFT, output_bytes=18_233),),
    ),
    Task(
        launch=_launch("tnostart"),
        attempts=(
            _ended(
                "failed",
                started_at=None,
                ended_at=None,
                reason="not_started",
                detail="cannot be executed: No such file or directory",
            ),
        ),
    ),
    Task(
        launch=_launch("tcancel2", session="s-1"),
        attempts=(_ended("cancelled", signal=15, reason="requested"),),
    ),
    Task(
        launch=_launch("ttimeout", timeout=timedelta(seconds=39)),
        attempts=(
            _ended(
                "timed_out",
                signal=15,
                reason="timeout",
                output_bytes=1 << 33,
                output_dropped=(1 << 33) - (64 << 20),
                output_truncated=True,
            ),
        ),
    ),
    Task(
        launch=_launch("tlost222", session="s-2"),
        attempts=(
            _ended(
                "lost",
                ended_at=None,
                reason="reboot",
                detail="the machine was rebooted",
                settled_by="reconciler",
            ),
            _attempt(2, state="running", created_at=_SETTLED, started_at=_SETTLED + _SECOND),
        ),
    ),
)


def _notice(task: str, kind: str, session: str | None, state: str) -> NoticeRow:
    return NoticeRow(
        id=f"n{task}01{kind}",
        task=task,
        attempt=1,
        kind=kind,
        session=session,
        state=state,
        created_at=_SETTLED,
    )


_BORN = (1, None, "queued", _NOW)
_RAN = (1, "queued", "running", _START)

HISTORIES: dict[str, History] = {
    "tended22": History(
        moves=(_BORN, _RAN, (1, "running", "succeeded", _SETTLED)),
        evidence=((1, _SETTLED, _EXITED),),
        notices=(_notice("tended22", "ended", "s-1", "acked"),),
    ),
    "tqueued2": History(moves=(_BORN,), evidence=(), notices=()),
    "trunning": History(moves=(_BORN, _RAN), evidence=(), notices=()),
    "tfailed2": History(
        moves=(_BORN, _RAN, (1, "running", "failed", _SETTLED)),
        evidence=((1, _SETTLED, _FAILED),),
        notices=(_notice("tfailed2", "ended", "s-1", "pending"),),
    ),
    "tnostart": History(
        moves=(_BORN, (1, "queued", "failed", _SETTLED)),
        evidence=((1, _SETTLED, _NO_START),),
        notices=(_notice("tnostart", "ended", None, "pending"),),
    ),
    "tcancel2": History(
        moves=(_BORN, _RAN, (1, "running", "cancelled", _SETTLED)),
        evidence=((1, _SETTLED, _KILLED),),
        notices=(_notice("tcancel2", "ended", "s-1", "pending"),),
    ),
    "ttimeout": History(
        moves=(_BORN, _RAN, (1, "running", "timed_out", _SETTLED)),
        evidence=((1, _SETTLED, _KILLED),),
        notices=(_notice("ttimeout", "ended", None, "pending"),),
    ),
    "tlost222": History(
        moves=(
            _BORN,
            _RAN,
            (1, "running", "lost", _SETTLED),
            (2, None, "queued", _SETTLED),
            (2, "queued", "running", _SETTLED + _SECOND),
        ),
        evidence=((1, _SETTLED, _GONE), (1, _SETTLED + 5 * _SECOND, _EXITED)),
        notices=(_notice("tlost222", "lost", "s-2", "pending"),),
    ),
}


def record(path: str) -> None:
    """Write these tasks with Outlive, as its launchers and keepers do, and as readers do that settle tasks."""
    launches = {task.id: task.launch for task in TASKS}
    with SqliteLedger(path, _NOW) as ledger:
        for id_, asked in launches.items():
            ledger.enqueue(asked, _attempt())
            if id_ not in ("tqueued2", "tnostart"):
                ledger.start(id_, 1, _START)
        ledger.set_condition("trunning", 1, "stalled")

        def settle(id_: str, evidence: Evidence, intent: Intent | None = None, **given: object) -> None:
            planned = plan_settlement(launches[id_], 1, evidence, intent, now=_SETTLED, settled_by="keeper")
            ledger.settle(planned.but(**given))

        settle("tended22", _EXITED, output=_SIZE)
        settle("tfailed2", _FAILED, output=_SIZE, left_running=_LEFT)
        settle("tnostart", _NO_START)
        settle("tcancel2", _KILLED, Intent(kind="cancel", at=_END))
        large = OutputSize(written=1 << 33, dropped=(1 << 33) - (64 << 20), truncated=True)
        settle("ttimeout", _KILLED, Intent(kind="timeout", at=_END), output=large)
        settle("tlost222", _GONE, settled_by="reconciler")
        ledger.add_attempt("tlost222", _attempt(2, created_at=_SETTLED))
        ledger.start("tlost222", 2, _SETTLED + _SECOND)
        ledger.add_evidence("tlost222", 1, _EXITED, _SETTLED + 5 * _SECOND)
        read_result(ledger, "tended22", "s-1")
    # Copy the write-ahead log into the database file, because only this file is kept.
    connection = apsw.Connection(path)
    # `wal_checkpoint()` does nothing on a connection that has not read yet, and reports no error.
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()

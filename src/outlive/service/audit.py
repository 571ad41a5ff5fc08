"""Auditing: every inconsistency by name, with what would mend it. Looks, and changes nothing."""

from __future__ import annotations

import os
from itertools import pairwise

from outlive.bundle.attempt import AttemptFiles
from outlive.domain.quantity import show_duration
from outlive.domain.value import Value
from outlive.domain.when import timedelta
from outlive.ledger.contract import Selection
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.strays import is_abandoned, strays

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.domain.task import Task

_FILES = ("lock", "control", "done", "record", "output")
_LONG_UNDELIVERED = timedelta(days=1)
# Clocks of one machine are set back and forth by a little all the time.
_TOLERANCE = timedelta(minutes=1)


class Finding(Value):
    """One thing that is not as it should be."""

    kind: str
    task: str | None
    what: str
    mend: str


def audit(home: Home, now: datetime) -> list[Finding]:
    """Everything that is inconsistent."""
    with SqliteLedger(home.ledger, now) as ledger:
        findings = [
            Finding(kind="damaged_ledger", task=None, what=text, mend="outlive audit --rebuild, after moving it aside")
            for text in ledger.check_integrity()
        ]
        findings += [_stray(home, task, now) for task in strays(home, ledger)]
        for task in ledger.tasks(Selection()):
            findings += _of_files(home, task)
            findings += _of_clocks(task, now)
        findings += [
            Finding(
                kind="undelivered",
                task=notice.task,
                what=f"its ending has been waiting for session {notice.session} for "
                f"{show_duration(now - notice.created_at)}",
                mend=f"outlive result {notice.task} --session {notice.session}, which acknowledges it",
            )
            for notice in ledger.undelivered(now - _LONG_UNDELIVERED)
        ]
    return findings


def _stray(home: Home, task: str, now: datetime) -> Finding:
    if os.path.exists(home.bundle(task) + "/spec.json"):
        mend = "outlive audit --rebuild gives it a row again"
    elif is_abandoned(home, task, now):
        mend = "outlive sweep --apply deletes it"
    else:
        mend = "a launch may be under way; if it stays, outlive sweep --apply deletes it in an hour"
    return Finding(kind="bundle_without_row", task=task, what=f"{home.bundle(task)} is in no ledger", mend=mend)


def _of_files(home: Home, task: Task) -> Iterator[Finding]:
    bundle = home.bundle(task.id)
    if not os.path.isdir(bundle):
        mend = "nothing brings it back; outlive sweep --apply deletes the record when it is due"
        yield Finding(kind="row_without_bundle", task=task.id, what=f"{bundle} is gone", mend=mend)
        return
    if not os.path.exists(bundle + "/spec.json"):
        mend = "nothing; it could not be rebuilt if the ledger were lost"
        yield Finding(kind="missing_spec", task=task.id, what="its spec.json is gone", mend=mend)
    for attempt in task.attempts:
        files = AttemptFiles(bundle, attempt.number)
        missing = [name for name in _FILES if not os.path.exists(f"{files.path}/{name}")]
        if missing:
            mend = "outlive show settles it" if attempt.settled_at is None else "nothing; its ending is on record"
            yield Finding(
                kind="missing_files",
                task=task.id,
                what=f"attempt {attempt.number} has no {', '.join(missing)}",
                mend=mend,
            )


def _of_clocks(task: Task, now: datetime) -> Iterator[Finding]:
    """Moments out of their order, by more than a clock is off."""
    for attempt in task.attempts:
        moments = [
            ("recorded", attempt.created_at),
            ("begun", attempt.started_at),
            ("ended", attempt.ended_at),
            ("settled", attempt.settled_at),
            ("looked at", now),
        ]
        known = [(name, moment) for name, moment in moments if moment is not None]
        for (name, before), (later, after) in pairwise(known):
            if before > after + _TOLERANCE:
                yield Finding(
                    kind="clock",
                    task=task.id,
                    what=f"attempt {attempt.number} was {name} {show_duration(before - after)} after it was {later}",
                    mend="nothing: the clock was set; durations of this attempt cannot be relied on",
                )

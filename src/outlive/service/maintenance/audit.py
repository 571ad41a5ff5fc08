"""Auditing: contradictions between the ledger and the files, and their repair."""

from __future__ import annotations

import os
import stat
from itertools import pairwise

from outlive.bundle import record
from outlive.bundle.attempt import AttemptFiles, keeper_lives
from outlive.bundle.output import size_of
from outlive.bundle.record import is_damaged
from outlive.domain.text.units import show_duration
from outlive.domain.timestamps import timedelta
from outlive.domain.value import Value
from outlive.ledger.contract import Selection
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.maintenance.orphan_bundles import is_abandoned, read_spec, strays
from outlive.service.maintenance.rebuild import could_be_rebuilt, has_begun, is_under_way

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Attempt, Task

_FILES = ("lock", "control", "done", "record", "output")
_LONG_UNDELIVERED = timedelta(days=1)
# Two times in the wrong order are reported only if they differ by more than this. Smaller differences can come from
# time synchronisation, which moves a clock back and forth by small amounts.
_TOLERANCE = timedelta(minutes=1)


class Finding(Value):
    """One contradiction between the ledger, the files and the clock, with its repair."""

    kind: str
    task: str | None
    what: str
    mend: str


def audit(home: Home, now: datetime) -> list[Finding]:
    """Return the contradictions between the ledger, the tasks' files and the clock."""
    with SqliteLedger(home.ledger, now) as ledger:
        findings = [
            Finding(
                kind="damaged_ledger",
                task=None,
                what=text,
                mend="move the ledger away, then run outlive audit --rebuild",
            )
            for text in ledger.check_integrity()
        ]
        findings += [_stray(home, task, now) for task in strays(home, ledger) if not _is_being_launched(home, task)]
        for task in ledger.tasks(Selection()):
            findings += _of_files(home, task)
            findings += _of_clocks(task, now)
        findings += [
            Finding(
                kind="undelivered",
                task=notice.task,
                what=f"the ending has been waiting for session {notice.session} for "
                f"{show_duration(now - notice.created_at)}",
                mend=f"outlive result {notice.task} --session {notice.session} acknowledges the ending",
            )
            for notice in ledger.undelivered(now - _LONG_UNDELIVERED)
        ]
    return findings


def by_kind(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    """Return the findings by kind, with the kinds in the order of their first finding."""
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.kind, []).append(finding)
    return found


def _is_being_launched(home: Home, task: str) -> bool:
    launch = read_spec(home, task)
    return launch is not None and is_under_way(home, launch)


def _stray(home: Home, task: str, now: datetime) -> Finding:
    if could_be_rebuilt(home, task):
        mend = "outlive audit --rebuild restores the row"
    elif is_abandoned(home, task, now):
        mend = "outlive sweep --apply deletes the bundle"
    elif read_spec(home, task) is not None:
        mend = "not needed during a launch; else the task never ran, and outlive sweep --apply deletes the bundle later"
    else:
        mend = "not needed during a launch; else outlive sweep --apply deletes the bundle after an hour"
    return Finding(
        kind="bundle_without_row", task=task, what=f"{home.bundle(task)} has no row in the ledger", mend=mend
    )


def _of_files(home: Home, task: Task) -> Iterator[Finding]:
    bundle = home.bundle(task.id)
    if not os.path.isdir(bundle):
        mend = "not possible, because the files are gone; outlive sweep --apply deletes the record when it is due"
        yield Finding(kind="row_without_bundle", task=task.id, what=f"the directory {bundle} does not exist", mend=mend)
        return
    if read_spec(home, task.id) is None:
        mend = "not possible; the task cannot be rebuilt if the ledger is lost"
        yield Finding(kind="missing_spec", task=task.id, what="spec.json is missing or cannot be read", mend=mend)
    yield from _of_modes(bundle, task)
    known = {str(attempt.number) for attempt in task.attempts}
    for name in sorted(set(_names(bundle + "/attempts")) - known):
        mend = "not needed; the launcher was killed before it wrote the row, and the next retry deletes the files"
        if name.isdigit() and has_begun(AttemptFiles(bundle, int(name))):
            mend = "outlive audit --rebuild restores the row"
        yield Finding(
            kind="attempt_without_row", task=task.id, what=f"attempts/{name} has no row in the ledger", mend=mend
        )
    for attempt in task.attempts:
        files = AttemptFiles(bundle, attempt.number)
        missing = [name for name in _FILES if not os.path.exists(f"{files.path}/{name}")]
        if missing:
            what = f"attempt {attempt.number} has no {', '.join(missing)}"
            mend = "not needed, because the ending is in the ledger" if attempt.settled_at else _ends_it(files, missing)
            yield Finding(kind="missing_files", task=task.id, what=what, mend=mend)
        else:
            yield from _of_attempt(files, task, attempt)


def _ends_it(files: AttemptFiles, missing: list[str]) -> str:
    """Return how the user can end an attempt whose files are missing.

    Without the file `control`, `outlive cancel` cannot reach the keeper.
    """
    process = files.read_slot("process")
    if "control" in missing and process is not None:
        return f"kill {process['pid']} ends the command, if it runs; outlive cancel cannot reach the keeper"
    return "outlive cancel ends the task; without these files, readers may not notice that the task has ended"


def _of_attempt(files: AttemptFiles, task: Task, attempt: Attempt) -> Iterator[Finding]:
    """Yield the contradictions between an attempt's files and its row in the ledger."""
    name = f"attempt {attempt.number}"
    for path in (files.done, files.control):
        if not stat.S_ISFIFO(os.stat(path).st_mode):
            what = f"{name} has a {os.path.basename(path)} that is not a FIFO"
            yield Finding(kind="wrong_files", task=task.id, what=what, mend="outlive cancel ends the task, if it runs")
    if damaged := [slot for slot in record.SLOTS if is_damaged(files.record, slot)]:
        what = f"{name} has a record that cannot be read: {', '.join(damaged)}"
        mend = "not possible; the ending is lost if the ledger does not have it"
        yield Finding(kind="damaged_record", task=task.id, what=what, mend=mend)
    size = size_of(files)
    if attempt.output_bytes is not None and size < attempt.output_bytes:
        what = f"{name} wrote {attempt.output_bytes} bytes of output, and {size} bytes are left"
        yield Finding(
            kind="lost_output", task=task.id, what=what, mend="not possible, because the output file was truncated"
        )
    if attempt.settled_at is None and not keeper_lives(files):
        what = f"{name} is {attempt.state} and has no keeper"
        yield Finding(
            kind="unkept", task=task.id, what=what, mend=f"outlive show {task.id} settles or adopts the attempt"
        )


def _of_modes(bundle: str, task: Task) -> Iterator[Finding]:
    for directory, _, names in os.walk(bundle):
        for path in (directory, *(f"{directory}/{name}" for name in names)):
            mode = os.lstat(path).st_mode & 0o777
            if mode & 0o077:
                what = f"{path} is open to other users (mode {mode:o})"
                yield Finding(kind="open_to_others", task=task.id, what=what, mend=f"chmod go= {path}")


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _of_clocks(task: Task, now: datetime) -> Iterator[Finding]:
    """Yield a finding for each pair of an attempt's times in the wrong order.

    Pairs that differ by at most `_TOLERANCE` are not reported.
    """
    for attempt in task.attempts:
        moments = [
            ("recorded", attempt.created_at),
            ("begun", attempt.started_at),
            ("ended", attempt.ended_at),
            ("settled", attempt.settled_at),
            ("audited", now),
        ]
        known = [(name, moment) for name, moment in moments if moment is not None]
        for (name, before), (later, after) in pairwise(known):
            if before > after + _TOLERANCE:
                yield Finding(
                    kind="clock",
                    task=task.id,
                    what=f"attempt {attempt.number} was {name} {show_duration(before - after)} after it was {later}",
                    mend="not possible; the clock was changed, so durations of this attempt may be wrong",
                )

"""Reconciling: settle what died unseen, adopt what still lives, touch nothing else.

Nobody holds the done FIFO: the keeper is dead. Nobody holds the lock either: everybody who could
have finished the attempt is dead. No grace period, no heartbeat, no look at a process id. Readers
take turns by the `control` lock. A probe that fails means unknown, and unknown changes nothing.
"""

from __future__ import annotations

import os
import time

from outlive.bundle import record
from outlive.bundle.attempt import AttemptFiles, keeper_lives, reopen_attempt, take
from outlive.bundle.kernel import boot_id, pid_namespace
from outlive.bundle.output import read_hole, size_of
from outlive.bundle.processes import is_held_open, open_verified
from outlive.domain.evidence import Evidence
from outlive.domain.settlement import OutputSize, plan_settlement
from outlive.keeper import tree
from outlive.keeper.launching import launch_adopter
from outlive.keeper.sight import read_evidence, read_identity
from outlive.keeper.supervision import read_intent
from outlive.ledger.sqlite import SqliteLedger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from outlive.bundle.attempt import Held
    from outlive.bundle.home import Home
    from outlive.domain.evidence import Intent, Started
    from outlive.domain.task import Attempt, Launch, Task
    from outlive.ledger.contract import Ledger

    Adopter = Callable[[Home, Launch, AttemptFiles, Held], object]


_TURN = 0.002
_A_READER_TAKES_AT_MOST = 1.0


def reconcile(
    home: Home,
    now: datetime,
    task: str | None = None,
    adopter: Adopter | None = launch_adopter,
    *,
    is_absent: bool = False,
) -> list[str]:
    """Settle or adopt whatever nobody looks after any more; returns the ids of what was orphaned.

    All tasks, or the one of this id. `adopter` is None in a program that must not fork; then an
    orphan is only marked as one. `is_absent`: somebody made sure, over a grace period, that nothing
    is left of a task whose processes we could not have seen.
    """
    orphans = []
    with SqliteLedger(home.ledger, now) as ledger:
        one = ledger.task(task) if task is not None else None
        for candidate in ledger.unsettled() if task is None else ([one] if one else []):
            if candidate.current.settled_at is None and (is_absent or is_ours_to_judge(candidate)):
                look = _Look(home, ledger, candidate, now)
                try:
                    if look.is_orphan():
                        orphans.append(candidate)
                except FileNotFoundError:
                    look.settle_by_record()
                except OSError:
                    continue  # a failed probe means unknown
        owes_sinks = ledger.owes_sinks()
    # Only now, with the ledger closed: SQLite keeps a table of its open files and locks in
    # memory, and a fork that opens the ledger anew would believe what its parent's copy says.
    if adopter is not None:
        for orphan in orphans:
            _adopt(home, orphan, adopter)
    if owes_sinks:
        from outlive.keeper.delivering import start_deliverer  # noqa: PLC0415 - few have sinks

        start_deliverer(home)
    return [orphan.id for orphan in orphans]


def is_ours_to_judge(task: Task) -> bool:
    """Only a process that could see the task's processes may say that they are gone."""
    attempt = task.current
    if task.launch.engine != "local":
        return False
    return _is_of_another_boot(attempt) or attempt.pid_namespace == pid_namespace()


def _is_of_another_boot(attempt: Attempt) -> bool:
    """Unknown is not another: whoever recorded it, or we, may have had no descriptor left to ask with."""
    here = boot_id()
    return bool(attempt.boot and here) and attempt.boot != here


class _Look:
    """One look at one attempt that has not ended."""

    def __init__(self, home: Home, ledger: Ledger, task: Task, now: datetime) -> None:
        self._ledger = ledger
        self._task = task
        self._now = now
        self._files = AttemptFiles(home.bundle(task.id), task.current.number)

    def is_orphan(self) -> bool:
        """Settle the attempt if it is dead; True if it lives and nobody keeps it."""
        if not os.path.isdir(self._files.path) or (_is_of_another_boot(self._task.current) and not self._has_files()):
            self._settle(self._vanished("unknown", "bundle_deleted", "its files were deleted"), None)
            return False
        control = self._take_turn()
        if control is None:
            return False
        lock = None
        try:
            lock = take(self._files, "lock")
            orphaned = lock is None or self._settle_unless_alive()
            if orphaned:
                self._ledger.set_condition(self._task.id, self._task.current.number, "orphaned")
            return orphaned
        finally:
            for fd in (lock, control):
                if fd is not None:
                    os.close(fd)

    def settle_by_record(self) -> None:
        """Settle an attempt of which somebody has deleted a lock, if its end is on record.

        Who lives cannot be said without it. But an end is an end, and whoever is about to tell it has the record open.
        """
        try:
            record_fd = record.open_record(self._files.record)
        except OSError:
            return
        try:
            evidence = read_evidence(record_fd, "witness")
            if evidence is not None and not is_held_open(self._files.record):
                self._settle(evidence, record_fd)
        finally:
            os.close(record_fd)

    def _take_turn(self) -> int | None:
        """The control lock; None if a keeper lives or somebody else has settled it meanwhile.

        Busy without a keeper, it is another reader's for a moment: then what that does is waited
        for, so that a reader never tells what was true before it looked.
        """
        until = time.monotonic() + _A_READER_TAKES_AT_MOST
        while not keeper_lives(self._files):
            control = take(self._files, "control")
            if not self._is_unchanged():
                if control is not None:
                    os.close(control)
                return None
            if control is not None or time.monotonic() > until:
                return control
            time.sleep(_TURN)
        return None

    def _is_unchanged(self) -> bool:
        """Whoever held the locks may have settled it between our reading the row and now."""
        again = self._ledger.task(self._task.id)
        return again is not None and again.current.but(condition=None) == self._task.current.but(condition=None)

    def _has_files(self) -> bool:
        return all(os.path.exists(path) for path in (self._files.lock, self._files.control, self._files.done))

    def _settle_unless_alive(self) -> bool:
        try:
            record_fd = record.open_record(self._files.record)
        except FileNotFoundError:
            self._settle(self._vanished("unknown", "bundle_deleted", "its record was deleted"), None)
            return False
        try:
            evidence = read_evidence(record_fd, "witness")
            if evidence is None:
                found = read_identity(record_fd)
                pidfd = open_verified(found[0]) if found else None
                if pidfd is not None:
                    os.close(pidfd)
                    return True
                started: Started = "no" if found is None else "yes" if found[1]["started"] == "yes" else "unknown"
                intent = read_intent(record_fd)
                evidence = self._refused(intent) if intent and started == "no" else self._unseen(started)
            self._settle(evidence, record_fd)
        finally:
            os.close(record_fd)
        return False

    def _refused(self, intent: Intent) -> Evidence:
        """Somebody had decided that it must not begin, and was not able to say so in the ledger."""
        return Evidence(kind="not_started", seen_by="reconciler", started="no", cause=intent.kind, at=intent.at)

    def _unseen(self, started: Started) -> Evidence:
        if _is_of_another_boot(self._task.current):
            return self._vanished(started, "reboot", "the machine was rebooted")
        return self._vanished(started, "keeper_killed", "its keeper and its witness are gone without a word")

    def _vanished(self, started: Started, cause: str, detail: str) -> Evidence:
        return Evidence(kind="vanished", seen_by="reconciler", started=started, cause=cause, detail=detail)

    def _settle(self, evidence: Evidence, record_fd: int | None) -> None:
        hole = read_hole(self._files)
        attempt = self._task.current
        if attempt.state == "queued" and evidence.started == "yes":
            # A rebuilt row may say so of what had just begun; from there, no move leads to a success.
            self._ledger.start(self._task.id, attempt.number, attempt.created_at)
        left: list[tree.Member] = []
        if not _is_of_another_boot(self._task.current) and evidence.started != "no":
            left = tree.remnants(self._task.id, record_fd)
        self._ledger.settle(
            plan_settlement(
                self._task.launch,
                self._task.current.number,
                evidence,
                None if record_fd is None else read_intent(record_fd),
                now=self._now,
                settled_by="reconciler",
                left_running=tree.describe(left),
                output=OutputSize(written=size_of(self._files), dropped=hole.end - hole.start),
            )
        )


def _adopt(home: Home, task: Task, adopter: Adopter) -> None:
    """Give an orphan a new keeper, unless somebody else was faster."""
    files = AttemptFiles(home.bundle(task.id), task.current.number)
    control = take(files, "control")
    if control is not None:
        adopter(home, task.launch, files, reopen_attempt(files, take(files, "lock"), control))

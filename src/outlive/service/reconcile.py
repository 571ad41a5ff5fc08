"""Reconciling: settle what died unseen, adopt what still lives, touch nothing else.

"Row not terminal, lock and control free" means that everybody who could have finished the
attempt is dead: no grace period, no heartbeat, no look at a process id. A probe that fails means
unknown, and unknown changes nothing.
"""

from __future__ import annotations

import os

from outlive.bundle import record
from outlive.bundle.attempt import AttemptFiles, reopen_attempt, take
from outlive.bundle.kernel import boot_id, pid_namespace
from outlive.bundle.output import read_hole, size_of
from outlive.bundle.processes import open_verified
from outlive.domain.evidence import Evidence
from outlive.domain.settlement import OutputSize, plan_settlement
from outlive.keeper import tree
from outlive.keeper.keeper import read_intent
from outlive.keeper.launching import launch_adopter
from outlive.keeper.sight import read_evidence, read_identity
from outlive.ledger.sqlite import SqliteLedger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from outlive.bundle.attempt import Held
    from outlive.bundle.home import Home
    from outlive.domain.evidence import Started
    from outlive.domain.task import Launch, Task
    from outlive.ledger.contract import Ledger

    Adopter = Callable[[Home, Launch, AttemptFiles, Held], object]


def reconcile(
    home: Home, now: datetime, task: str | None = None, adopter: Adopter | None = launch_adopter
) -> list[str]:
    """Settle or adopt whatever nobody looks after any more; returns the ids of what was orphaned.

    All tasks, or the one of this id. `adopter` is None in a program that must not fork; then an
    orphan is only marked as one.
    """
    orphans = []
    with SqliteLedger(home.ledger, now) as ledger:
        one = ledger.task(task) if task is not None else None
        for candidate in ledger.unsettled() if task is None else ([one] if one else []):
            if candidate.current.settled_at is None and _is_ours_to_judge(candidate):
                try:
                    if _Look(home, ledger, candidate, now).is_orphan():
                        orphans.append(candidate)
                except OSError:
                    continue  # a failed probe means unknown
    # Only now, with the ledger closed: SQLite keeps a table of its open files and locks in
    # memory, and a fork that opens the ledger anew would believe what its parent's copy says.
    if adopter is not None:
        for orphan in orphans:
            _adopt(home, orphan, adopter)
    return [orphan.id for orphan in orphans]


def _is_ours_to_judge(task: Task) -> bool:
    """Only a process that could see the task's processes may say that they are gone."""
    attempt = task.current
    if task.launch.engine != "local" or task.launch.host != os.uname().nodename:
        return False
    return attempt.boot != boot_id() or attempt.pid_namespace == pid_namespace()


class _Look:
    """One look at one attempt that has not ended."""

    def __init__(self, home: Home, ledger: Ledger, task: Task, now: datetime) -> None:
        self._ledger = ledger
        self._task = task
        self._now = now
        self._files = AttemptFiles(home.bundle(task.id), task.current.number)

    def is_orphan(self) -> bool:
        """Settle the attempt if it is dead; True if it lives and nobody keeps it."""
        lock = take(self._files, "lock")
        control = None
        try:
            control = take(self._files, "control")
            if control is None or not self._is_unchanged():
                return False
            orphaned = lock is None or self._settle_unless_alive()
            if orphaned:
                self._ledger.set_condition(self._task.id, self._task.current.number, "orphaned")
            return orphaned
        finally:
            for fd in (lock, control):
                if fd is not None:
                    os.close(fd)

    def _is_unchanged(self) -> bool:
        """Whoever held the locks may have settled it between our reading the row and now."""
        again = self._ledger.task(self._task.id)
        return again is not None and again.current.but(condition=None) == self._task.current.but(condition=None)

    def _settle_unless_alive(self) -> bool:
        record_fd = record.open_record(self._files.record)
        try:
            evidence = read_evidence(record_fd, "witness")
            if evidence is None:
                found = read_identity(record_fd)
                pidfd = open_verified(found[0]) if found else None
                if pidfd is not None:
                    os.close(pidfd)
                    return True
                evidence = self._vanished(
                    "no" if found is None else "yes" if found[1]["started"] == "yes" else "unknown"
                )
            self._settle(evidence, record_fd)
        finally:
            os.close(record_fd)
        return False

    def _vanished(self, started: Started) -> Evidence:
        rebooted = self._task.current.boot != boot_id()
        return Evidence(
            kind="vanished",
            seen_by="reconciler",
            started=started,
            cause="reboot" if rebooted else "keeper_killed",
            detail="the machine was rebooted" if rebooted else "its keeper and its witness are gone without a word",
        )

    def _settle(self, evidence: Evidence, record_fd: int) -> None:
        hole = read_hole(self._files)
        may_have_left = self._task.current.boot == boot_id() and evidence.started != "no"
        self._ledger.settle(
            plan_settlement(
                self._task.launch,
                self._task.current.number,
                evidence,
                read_intent(record_fd),
                now=self._now,
                settled_by="reconciler",
                left_running=tree.describe(tree.remnants(self._task.id, record_fd)) if may_have_left else (),
                output=OutputSize(written=size_of(self._files), dropped=hole.end - hole.start),
            )
        )


def _adopt(home: Home, task: Task, adopter: Adopter) -> None:
    """Give an orphan a new keeper, unless somebody else was faster."""
    files = AttemptFiles(home.bundle(task.id), task.current.number)
    lock = take(files, "lock")
    control = take(files, "control")
    if control is None:
        if lock is not None:
            os.close(lock)
        return
    adopter(home, task.launch, files, reopen_attempt(files, lock, control))

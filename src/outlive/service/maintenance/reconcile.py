"""Reconciling: settling or adopting attempts whose keeper has died.

An attempt whose command still runs is adopted: it gets a new keeper. Every other attempt is settled. A keeper has a
FIFO of its attempt open for writing (the done FIFO). If no process has it open, the keeper is dead. If no process has
the attempt's lock either, every process that could have settled the attempt is dead. These checks need no grace
period, no heartbeat and no process id. The `control` lock lets only one process at a time check an attempt. If a check
fails with an error, the attempt stays unchanged.
"""

from __future__ import annotations

import os
import time

from outlive.bundle import record
from outlive.bundle.attempt import AttemptFiles, keeper_lives, reopen_attempt, take
from outlive.bundle.output import has_writers, read_hole, size_of
from outlive.domain.tasks.evidence import KILLED_AT_START, Evidence, refused
from outlive.domain.tasks.settlement import OutputSize, plan_settlement
from outlive.keeper import process_tree
from outlive.keeper.exit_watch import read_evidence, read_identity
from outlive.keeper.intent import read_intent
from outlive.keeper.spawn import launch_adopter
from outlive.ledger.sqlite import SqliteLedger
from outlive.linux.processes import is_held_open, open_verified
from outlive.linux.syscalls import boot_id, pid_namespace
from outlive.service.clock import utc_now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from outlive.bundle.attempt import HeldFiles
    from outlive.bundle.home import Home
    from outlive.domain.agents.result import AgentResult
    from outlive.domain.tasks.evidence import Started
    from outlive.domain.tasks.settlement import Settlement
    from outlive.domain.tasks.task import Attempt, Launch, Task
    from outlive.linux.processes import Identity

    Adopter = Callable[[Home, Launch, AttemptFiles, HeldFiles], object]


_TURN = 0.002
_A_READER_TAKES_AT_MOST = 1.0


def reconcile(
    home: Home,
    now: datetime,
    task: str | None = None,
    adopter: Adopter | None = launch_adopter,
) -> list[str]:
    """Settle or adopt attempts without a keeper, and return the ids of orphaned tasks.

    An orphan is a task whose command runs without a keeper. Only the task `task` is checked. If `task` is None, all
    live tasks are checked. Without `adopter`, as in a program that must not fork, orphans are only marked in the
    ledger.
    """
    orphans = []
    with SqliteLedger(home.ledger, now) as ledger:
        one = ledger.task(task) if task is not None else None
        for candidate in ledger.unsettled() if task is None else ([one] if one else []):
            if candidate.current.settled_at is None and may_settle(candidate):
                check = _Check(home, ledger, candidate)
                try:
                    if check.is_orphan() and is_in_sight(candidate):
                        orphans.append(candidate)
                except FileNotFoundError:
                    check.settle_by_record()
                except OSError:
                    continue  # the state is unknown after a failed check, so the attempt stays unchanged
        owes_sinks = ledger.owes_sinks()
    # Fork only after the ledger is closed. SQLite keeps a table of its open files and locks in memory. A forked
    # process would inherit this table. If it then opened the ledger again, it would trust a table that is no longer
    # correct.
    if adopter is not None:
        for orphan in orphans:
            _adopt(home, orphan, adopter)
    if owes_sinks:
        from outlive.keeper.sink_process import start_deliverer  # noqa: PLC0415 - imported here, because it is needed only if a sink is configured

        start_deliverer(home)
    return [orphan.id for orphan in orphans]


def may_settle(task: Task) -> bool:
    """Return whether this process may settle a task that has no keeper.

    The state directory is on a local file system. So a lock that is free for one process is free for every process of
    this boot, in any PID namespace. After a reboot, no process of the task exists any more. A task of another machine
    must not be settled, because its processes cannot be checked from here.
    """
    if task.launch.engine != "local":
        return False
    return bool(task.current.boot and boot_id()) or is_in_sight(task)


def is_in_sight(task: Task) -> bool:
    """Return whether this process can see a task's processes.

    Only then may it adopt the task.
    """
    return task.current.pid_namespace == pid_namespace()


def _is_of_another_boot(attempt: Attempt) -> bool:
    """Return whether an attempt began before the last boot of the machine.

    Returns False if a boot id is unknown.
    """
    here = boot_id()
    return bool(attempt.boot and here) and attempt.boot != here


class _Check:
    """One check of the newest attempt of a task that has not ended."""

    def __init__(self, home: Home, ledger: SqliteLedger, task: Task) -> None:
        self._home = home
        self._ledger = ledger
        self._task = task
        self._files = AttemptFiles(home.bundle(task.id), task.current.number)

    def is_orphan(self) -> bool:
        """Return whether the attempt's command runs without a keeper.

        If no process of the attempt is alive, this method settles the attempt.
        """
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
        """Settle an attempt from its record, if its lock was deleted.

        The record says how the attempt ended, and a recorded end is final. If a process has the record open, that
        process may be about to settle the attempt. Then this method leaves the attempt unchanged.
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
        """Take the lock that lets one process check an attempt, and return its descriptor.

        Returns None if a keeper is alive, if the attempt has changed, or if the lock stays busy. If the attempt has no
        keeper and another process has the lock, this method waits for the lock. Otherwise this process could report a
        state that was true only before the call.
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
        """Return whether the attempt's row is the same as when this check began."""
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
                if found is not None and self._may_live(found[0]):
                    return True
                started = self._started(None if found is None else found[1]["started"])
                intent = read_intent(record_fd)
                evidence = refused(intent, "reconciler") if intent and started == "no" else self._unseen(started)
            self._settle(evidence, record_fd)
        finally:
            os.close(record_fd)
        return False

    def _may_live(self, command: Identity) -> bool:
        """Return whether the command may still run although keeper and witness are dead.

        Processes in another PID namespace cannot be seen, but the kernel shows whether any process has the output open
        for writing.
        """
        pidfd = open_verified(command)
        if pidfd is not None:
            os.close(pidfd)
            return True
        is_hidden = not is_in_sight(self._task) and not _is_of_another_boot(self._task.current)
        return is_hidden and has_writers(self._files.output)

    def _started(self, recorded: str | None) -> Started:
        """Return whether the command began, according to the attempt's record.

        `recorded` is the field `started` of the record's part about processes, or None if the record lacks this part.
        This part is not synced to disk, so a power failure may have deleted it.
        """
        if recorded is not None:
            return "yes" if recorded == "yes" else "unknown"
        attempt = self._task.current
        return "unknown" if attempt.state == "running" and _is_of_another_boot(attempt) else "no"

    def _unseen(self, started: Started) -> Evidence:
        if _is_of_another_boot(self._task.current):
            return self._vanished(started, "reboot", "the machine was rebooted")
        detail = "its keeper and its witness died before they recorded the end"
        if started != "no":
            from outlive.keeper.observation.unanswered_calls import note_unanswered  # noqa: PLC0415 - imported here, because only a lost task needs it

            detail = note_unanswered(self._files) or detail
        is_at_start = started == "no" and self._task.state == "running"
        return self._vanished(started, KILLED_AT_START if is_at_start else "keeper_killed", detail)

    def _vanished(self, started: Started, cause: str, detail: str) -> Evidence:
        return Evidence(kind="vanished", seen_by="reconciler", started=started, cause=cause, detail=detail)

    def _settle(self, evidence: Evidence, record_fd: int | None) -> None:
        hole = read_hole(self._files)
        attempt = self._task.current
        if attempt.state == "queued" and evidence.started == "yes":
            # A row that was restored from files may be queued although the command had begun. An attempt cannot go
            # from queued to succeeded, so mark it as started first.
            self._ledger.start(self._task.id, attempt.number, attempt.created_at)
        left: list[process_tree.Member] = []
        if not _is_of_another_boot(self._task.current) and evidence.started != "no":
            left = process_tree.remnants(self._task.id, record_fd)
        settlement = plan_settlement(
            self._task.launch,
            attempt.number,
            evidence,
            None if record_fd is None else read_intent(record_fd),
            now=utc_now(),
            settled_by="reconciler",
            left_running=process_tree.describe(left),
            output=OutputSize(written=size_of(self._files), dropped=hole.end - hole.start),
            agent=self._agent(evidence),
        )
        if not self._ledger.settle(self._with_worktree(settlement)):
            return
        if self._task.launch.agent is not None:
            from outlive.bundle.agent_files import trace_ending  # noqa: PLC0415 - imported here, because only agent tasks need it

            trace_ending(self._files.bundle, self._task.launch.agent, settlement)
        if not left:
            self._record_left_open()

    def _agent(self, evidence: Evidence) -> AgentResult | None:
        """Return the agent's result, read from its output.

        Returns None for a command, or if the client never began.
        """
        request = self._task.launch.agent
        if request is None or evidence.started == "no":
            return None
        from outlive.agents.read_attempt import result_of_attempt  # noqa: PLC0415 - imported here, because only agent tasks need it

        return result_of_attempt(self._files, request, evidence)

    def _with_worktree(self, settlement: Settlement) -> Settlement:
        """Return the settlement. For an agent, it also has the worktree's path and branch.

        This process does not remove the worktree, because it may run with other rights than the launcher.
        """
        request, known = self._task.launch.agent, settlement.agent or self._task.current.agent
        if request is None or known is None or request.worktree is None or not os.path.isdir(request.worktree.path):
            return settlement
        return settlement.but(agent=known.but(worktree=request.worktree.path, branch=request.worktree.branch))

    def _record_left_open(self) -> None:
        """Record the paths that the attempt left changed.

        Usually the keeper of the attempt does this, but the keeper has died.
        """
        task = self._ledger.task(self._task.id)
        if task is not None and task.state != "succeeded":
            from outlive.keeper.observation.record_left_open import record_left_open  # noqa: PLC0415 - imported here, because a reader needs it only if the keeper has died

            record_left_open(self._home, self._ledger, task)


def _adopt(home: Home, task: Task, adopter: Adopter) -> None:
    """Start a new keeper for an orphan, unless another process is adopting it."""
    files = AttemptFiles(home.bundle(task.id), task.current.number)
    control = take(files, "control")
    if control is not None:
        adopter(home, task.launch, files, reopen_attempt(files, take(files, "lock"), control))

"""Cancelling: the keeper of a task ends all processes of the task.

A task that has ended has no keeper. If it left processes running, the cancelling process ends them.
"""

from __future__ import annotations

import os
import time

from outlive.bundle.attempt import AttemptFiles, poke
from outlive.bundle.record import open_record
from outlive.domain.timestamps import timedelta
from outlive.domain.value import Value
from outlive.keeper import process_tree
from outlive.keeper.exit_watch import read_identity
from outlive.keeper.kill_tree import STEPS, end_tree
from outlive.ledger.sqlite import SqliteLedger
from outlive.linux.processes import KEEPER_NAME, WITNESS_NAME, is_stopped, name_of, open_verified, opened_by
from outlive.linux.syscalls import boot_id, pid_namespace, signal
from outlive.service.clock import utc_now
from outlive.service.maintenance.reconcile import reconcile
from outlive.service.tasks.find import read_tasks
from outlive.service.tasks.wait import wait_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Attempt, LeftRunning, Task
    from outlive.service.maintenance.reconcile import Adopter

# The time limit of a cancel, in seconds. It covers all steps of the keeper, and then the settlement, even on a slow
# machine.
_CEILING = sum(grace for _, grace in STEPS) + 10
_MOST_ROUNDS = 3
_ASK_AGAIN = timedelta(seconds=1)


class Cancelled(Value):
    """The outcome of a cancel: the task, and whether the cancel ended the task."""

    task: Task
    took: bool
    late: bool
    """Whether the task ended by itself before its keeper got the request to cancel."""
    ended: tuple[LeftRunning, ...] = ()
    """Processes that the task had left running when it ended, and that the cancel has ended."""
    alive: tuple[LeftRunning, ...] = ()
    """Processes of the task that are still alive."""

    @property
    def is_done(self) -> bool:
        """Whether the cancel ended the task, or all processes that an ended task had left."""
        return self.took or (bool(self.ended) and not self.alive)


def cancelled_json(outcome: Cancelled) -> dict[str, object]:
    """Return the fields that a cancel adds to the JSON of a task."""
    return {
        "cancelled": outcome.took,
        "ended_left_running": [left.pid for left in outcome.ended],
        "still_alive": [left.pid for left in outcome.alive],
    }


def pids_of(processes: Sequence[LeftRunning]) -> str:
    """Return the process ids as a phrase for people."""
    return ", ".join(str(process.pid) for process in processes)


def cancel(home: Home, ids: Sequence[str], adopter: Adopter | None) -> list[Cancelled]:
    """End all processes of tasks, even of ended tasks, and return the outcomes.

    If a task is an agent, all tasks that were launched from inside the agent are ended too.
    """
    found = list(dict.fromkeys((*ids, *_live_below_agents(home, ids))))
    outcomes = _cancel(home, found, adopter)
    for _ in range(_MOST_ROUNDS):
        # An agent may have launched a further task while the agent was being ended.
        born = [one for one in _live_below_agents(home, ids) if one not in found]
        if not born:
            break
        found += born
        outcomes += _cancel(home, born, adopter)
    return outcomes


def _live_below_agents(home: Home, ids: Sequence[str]) -> list[str]:
    """Return the running tasks that the agents among `ids` have launched.

    Tasks that were launched by such a task are returned too.
    """
    agents = [task.id for task in read_tasks(home, ids) if task.launch.agent is not None]
    below = with_descendants(home, agents)[len(agents) :] if agents else []
    return [task.id for task in read_tasks(home, below) if task.current.settled_at is None]


def _cancel(home: Home, ids: Sequence[str], adopter: Adopter | None) -> list[Cancelled]:
    for one in ids:
        reconcile(home, utc_now(), one, adopter)
    leftovers = {task.id: _end_leftovers(home, task) for task in read_tasks(home, ids) if task.current.settled_at}
    outcomes = [_outcome(task) for task in ask_to_end(home, ids, "cancel", adopter)]
    return [leftovers.get(outcome.task.id) or outcome for outcome in outcomes]


def leftovers_of(home: Home, task: Task) -> tuple[LeftRunning, ...]:
    """Return the living processes of a task that has ended."""
    return process_tree.describe(_leftover_members(home, task))


def _leftover_members(home: Home, task: Task) -> list[process_tree.Member]:
    """Return the processes that an ended task left running.

    A process counts if the ledger has recorded it, if it has the task's id in its environment, or if it descends from
    a process of the task.
    """
    found: dict[int, process_tree.Member] = {}
    ours_in_all: set[int] = set()
    for attempt in task.attempts:
        files = AttemptFiles(home.bundle(task.id), attempt.number)
        ours = frozenset((*_keepers_of(files), *_witness_of(files)))
        ours_in_all |= ours
        for keeper in ours:
            found.update(
                (below.pid, below) for below in process_tree.descendants(keeper, ours) if below.pid not in ours
            )
        found.update((member.pid, member) for member in _recorded_leftovers(attempt))
    found.update((member.pid, member) for member in process_tree.with_setting("OUTLIVE_TASK", task.id))
    for member in list(found.values()):
        found.update((below.pid, below) for below in process_tree.descendants(member.pid))
    for pid in (os.getpid(), *ours_in_all):
        found.pop(pid, None)
    return [member for member in found.values() if not _is_of_another_task(home, task, member.pid)]


def _recorded_leftovers(attempt: Attempt) -> list[process_tree.Member]:
    """Return the processes that an attempt left running and that still run.

    Only processes that the ledger has recorded, and that this process can see, are returned.
    """
    if attempt.boot != boot_id() or attempt.pid_namespace != pid_namespace():
        return []
    # Older versions did not record the identity of a process. Then only the task's id in the environment of the process
    # proves that the process belongs to the task.
    return [
        member
        for left in attempt.left_running
        if (member := process_tree.look(left.pid))
        and member == process_tree.Member(pid=left.pid, start=left.start, inode=left.inode)
    ]


def is_still_running(attempt: Attempt, left: LeftRunning) -> bool | None:
    """Return whether a process that a task left running still runs.

    Returns None if this process cannot see the other process, or if the identity of the other process was not recorded.
    """
    if attempt.boot != boot_id():
        return False
    if attempt.pid_namespace != pid_namespace() or not left.inode:
        return None
    return any(member.pid == left.pid for member in _recorded_leftovers(attempt))


def _is_of_another_task(home: Home, task: Task, pid: int) -> bool:
    return process_tree.keeps_another_task(pid) or process_tree.runs_another_task(pid, home, task.id)


def _end_leftovers(home: Home, task: Task) -> Cancelled | None:
    """End the processes that an ended task left running.

    Returns None if no such process runs.
    """
    before = leftovers_of(home, task)
    if not before:
        return None
    end_tree(lambda: _leftover_members(home, task), lambda pid: _is_of_another_task(home, task, pid))
    alive = leftovers_of(home, task)
    left = {(each.pid, each.start) for each in alive}
    ended = tuple(each for each in before if (each.pid, each.start) not in left)
    return Cancelled(task=task, took=False, late=False, ended=ended, alive=alive)


def ask_to_end(home: Home, ids: Sequence[str], word: str, adopter: Adopter | None) -> list[Task]:
    """Ask the keepers of tasks to end the tasks, and wait until the tasks have ended.

    `word` is the reason that the keepers record. The wait ends after `_CEILING` seconds, so a returned task may still
    be running.
    """
    for one in ids:
        reconcile(home, utc_now(), one, adopter)
    until = time.monotonic() + _CEILING
    is_first = True
    while time.monotonic() < until:
        waiting = [task for task in read_tasks(home, ids) if task.current.settled_at is None]
        for task in waiting:
            files = AttemptFiles(home.bundle(task.id), task.current.number)
            if not is_first:
                continue_stopped(files)
            # Ask again if the attempt's record has no request yet. The keeper may have been killed before it read the
            # request, and a new keeper may have adopted the attempt.
            if files.read_slot("intent") is None:
                poke(files, word)
        is_first = False
        if wait_for(home, [task.id for task in waiting], timeout=_ASK_AGAIN, adopter=adopter):
            break
    return read_tasks(home, ids)


def continue_stopped(files: AttemptFiles) -> None:
    """Continue the keeper and the witness of an attempt if they are stopped (SIGSTOP).

    A stopped process cannot read the request to cancel. The processes are found by the attempt's record, which they
    have open. The signal is sent through a pidfd, so that no other process gets it.
    """
    for pid in filter(is_stopped, _keepers_of(files)):
        try:
            pidfd = os.pidfd_open(pid)
        except OSError:
            continue
        try:
            if pid in _keepers_of(files):  # check again: another process may have got this id
                signal.pidfd_send_signal(pidfd, signal.SIGCONT)
        except OSError:
            continue
        finally:
            os.close(pidfd)


def _keepers_of(files: AttemptFiles) -> list[int]:
    """Return the process ids of an attempt's keeper and witness.

    These processes are found by their names, and because they have the attempt's record open.
    """
    record = os.path.realpath(files.record)
    named = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [pid for pid in named if name_of(pid) in (KEEPER_NAME, WITNESS_NAME) and record in _opened_by(pid)]


def _witness_of(files: AttemptFiles) -> list[int]:
    """Return the process id of the recorded witness, if the witness is alive.

    A witness closes the record at the end, so `_keepers_of` does not find it.
    """
    try:
        record_fd = open_record(files.record)
    except OSError:
        return []
    try:
        named = read_identity(record_fd, "witness")
    finally:
        os.close(record_fd)
    pidfd = open_verified(named[0]) if named else None
    if named is None or pidfd is None:
        return []
    os.close(pidfd)
    return [named[0].pid]


def _opened_by(pid: int) -> list[str]:
    try:
        return opened_by(pid)
    except OSError:
        return []  # the process has ended, or this user may not inspect it


def _outcome(task: Task) -> Cancelled:
    attempt = task.current
    ended_otherwise = attempt.settled_at is not None and attempt.reason != "cancel_incomplete"
    return Cancelled(
        task=task,
        took=task.state == "cancelled",
        late=ended_otherwise and task.state != "cancelled",
        alive=() if ended_otherwise else attempt.left_running,
    )


def with_descendants(home: Home, ids: Sequence[str]) -> list[str]:
    """Return the given tasks and all tasks that were launched from inside them."""
    found = list(ids)
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        layer: Sequence[str] = found[:]
        while layer:
            layer = [child for child in ledger.children(layer) if child not in found]
            found.extend(layer)
    return found

"""The work of a keeper before its queued command may begin: waiting for its turn.

A keeper that must wait sleeps (`keeper.hibernate`). It watches a FIFO that the task before it in the queue has open,
and then the FIFOs that the keepers of the running tasks have open. When a FIFO hangs up, the keeper reads the ledger
again. A FIFO hangs up even if its keeper is killed. So neither a message nor a timeout is needed.
"""

from __future__ import annotations

import gc
import os
import time
from select import POLLIN, poll

from outlive.bundle.attempt import AttemptFiles, has_writer, open_done, open_turn
from outlive.bundle.home import Home
from outlive.code_copy import is_carried
from outlive.domain.errors import Broken, NewerLedger, Unavailable
from outlive.domain.tasks.queueing import Turn, plan_turn
from outlive.keeper.hibernate import fall_asleep, read_note
from outlive.keeper.keeper import answer, become_keeper, run_now, wait_for_go
from outlive.keeper.not_started import read_call, refuse
from outlive.keeper.plan import plan_from
from outlive.keeper.spawn import launch_adopter
from outlive.ledger.queue_order import QueueOrder
from outlive.ledger.sqlite import SqliteLedger
from outlive.linux.processes import KEEPER_NAME
from outlive.linux.syscalls import name_process
from outlive.service.clock import utc_now
from outlive.service.maintenance.orphan_bundles import read_spec
from outlive.service.maintenance.reconcile import reconcile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from outlive.bundle.attempt import HeldFiles
    from outlive.domain.tasks.evidence import IntentKind
    from outlive.domain.tasks.task import Launch
    from outlive.keeper.plan import Plan

_MOST_FIFOS = 200
_LOST_LEDGER_PAUSE = 5.0
_NEWER_LEDGER_PAUSE = 60.0  # the pause in seconds, if neither this process nor the installed code can read the ledger
_SETTLING_PAUSE, _LONGEST_PAUSE = 0.002, 1.0


def wait_then_keep(plan: Plan, held: HeldFiles, go: int, ready: int) -> NoReturn:
    """Run the keeper of an attempt that may have to wait in the queue.

    The launcher gets an answer when the attempt runs, waits or has ended.
    """
    become_keeper(plan, held, (go, ready))
    reason = wait_for_go(plan, held, go)
    if reason is not None:
        _end(plan, held, reason, None, ready)
    _take_turn(plan, held, ready)


def wake(note: int) -> NoReturn:
    """Continue a keeper that has slept.

    `note` is the descriptor of the file in which the keeper stored its state before it slept.
    """
    gc.disable()
    name_process(KEEPER_NAME)
    note_content, held = read_note(note)
    home = Home(note_content["home"], can_punch=note_content["can_punch"])
    launch = read_spec(home, note_content["task"]) or _recorded(home, note_content["task"])
    if launch is None:
        os._exit(0)
    _take_turn(plan_from(note_content, launch), held, None)


def _recorded(home: Home, task: str) -> Launch | None:
    with SqliteLedger(home.ledger, utc_now(), create=False) as ledger:
        found = ledger.task(task)
    return None if found is None else found.launch


def _take_turn(plan: Plan, held: HeldFiles, ready: int | None) -> NoReturn:
    """Wait in the queue until the attempt may begin, and then begin it."""
    pause = _SETTLING_PAUSE
    while True:
        try:
            plan = _try_turn(plan, held, ready)
        except NewerLedger:
            # An upgrade has changed the ledger, and this process cannot read it. The installed code may be able to
            # read it.
            answer(ready, "queued")
            pause = 0.0 if is_carried() else _NEWER_LEDGER_PAUSE
            fall_asleep(plan, held, until=time.monotonic() + pause, is_outdated=True)
        except (Unavailable, Broken):
            pass  # the disk is full, or the ledger is locked or lost: the attempt keeps its place in the queue
        # Try again after a pause. Either the ledger is unavailable, or an awaited task's keeper has exited and the
        # task is not settled yet. A task in a PID namespace that we cannot see must be settled by another process.
        answer(ready, "queued")
        ready = None
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


def _try_turn(plan: Plan, held: HeldFiles, ready: int | None) -> Plan:
    """Try once to begin a queued attempt, to end it, or to sleep until it may begin.

    Returns the attempt's plan if the attempt may not begin yet and there is no process to wait for. Then the caller has
    to try again.
    """
    if (reason := _reason_to_end(plan, held)) is not None:
        _end(plan, held, reason, None, ready)
    turn, not_before = _read_turn(plan)
    if turn is None:
        # The ledger has no row for this task, so the ledger was lost. Wait until it is rebuilt.
        answer(ready, "queued")
        fall_asleep(plan, held, until=time.monotonic() + _LOST_LEDGER_PAUSE)
    if turn.refused:
        _end(plan, held, "dependency", turn.refused, ready)
    if not_before is None and plan.queue_until is None and plan.launch.queue_timeout is not None:
        plan = plan.but(queue_until=time.monotonic() + plan.launch.queue_timeout.total_seconds())
    if turn.has_come and not_before is None:
        if not _start(plan):
            os._exit(0)
        held.give_turn()
        run_now(plan, held, ready)
    fifos = _open_fifos(plan, turn)
    if fifos or not_before is not None:
        answer(ready, "queued")
        moments = [moment for moment in (plan.queue_until, not_before) if moment is not None]
        how_many = min(turn.how_many or 1, len(fifos))
        fall_asleep(plan, held, doors=fifos, how_many=how_many, until=min(moments, default=None))
    return plan


def _reason_to_end(plan: Plan, held: HeldFiles) -> IntentKind | None:
    """Return why to stop waiting in the queue, or None to go on.

    The reasons are a cancel, the end of the session, and the timeout of the queue.
    """
    waiting = poll()
    waiting.register(held.control, POLLIN)
    if plan.surroundings.owner is not None:
        waiting.register(plan.surroundings.owner, POLLIN)
    for fd, _ in waiting.poll(0):
        if fd == plan.surroundings.owner:
            return "session_ended"
        if (reason := read_call(held.control)) is not None:
            return reason
    if plan.queue_until is not None and time.monotonic() >= plan.queue_until:
        return "queue_timeout"
    return None


def _read_turn(plan: Plan) -> tuple[Turn | None, float | None]:
    """Return the next step of a queued attempt, and the end of its pause.

    Both are read from the ledger. The next step is None for an unknown task. A pause delays a retry. The end of the
    pause is a monotonic time, or None without a pause.
    """
    with SqliteLedger(plan.home.ledger, utc_now(), create=False) as ledger:
        line = QueueOrder(ledger)
        task = ledger.task(plan.launch.id)
        if task is None:
            return None, None
        obstacles = line.obstacles(plan.launch.id)
        if obstacles is None or obstacles.attempt.number != plan.files.number:
            os._exit(0)  # this keeper exits, because another process has ended the attempt
        begins = obstacles.attempt.not_before
        left = 0.0 if begins is None else (begins - utc_now()).total_seconds()
        if left > 0:
            return Turn(), time.monotonic() + left  # join the queue only after the pause
        if plan_turn(obstacles).should_join:
            line.join(plan.launch.id, plan.files.number)
            obstacles = line.obstacles(plan.launch.id) or obstacles
    return plan_turn(obstacles), None


def _start(plan: Plan) -> bool:
    with SqliteLedger(plan.home.ledger, utc_now(), create=False) as ledger:
        return ledger.start(plan.launch.id, plan.files.number, utc_now())


def _open_fifos(plan: Plan, turn: Turn) -> list[int]:
    """Return the FIFOs that the keepers of the awaited attempts have open.

    Returns an empty list if an attempt had no keeper and was settled or adopted. Then the caller must plan again.
    """
    fifos: list[int] = []
    holders = (turn.must_begin,) if turn.must_begin else turn.must_end[:_MOST_FIFOS]
    for holder in holders:
        files = AttemptFiles(plan.home.bundle(holder.task), holder.attempt)
        try:
            fifo = open_turn(files) if turn.must_begin else open_done(files)
        except OSError:
            fifo = None
        if fifo is not None:
            fifos.append(fifo)
        if fifo is None or not has_writer(fifo):
            for each in fifos:
                os.close(each)
            reconcile(plan.home, utc_now(), holder.task, launch_adopter)
            return []
    return fifos


def _end(plan: Plan, held: HeldFiles, kind: IntentKind, why: str | None, ready: int | None) -> NoReturn:
    refuse(plan, held, kind, why)
    answer(ready, "ended")
    os._exit(0)

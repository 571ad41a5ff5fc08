"""Waiting for one's turn: what a keeper does before its command may begin.

It looks at the ledger, and if it is not its turn, it sleeps on the done FIFOs of those that it
waits for (see `keeper.sleeping`). It wakes when enough of them have ended, and looks again. Nobody
is asked, nobody announces anything, and nobody's death is waited out: a FIFO is hung up by the
kernel, and an attempt that has no keeper any more is settled or adopted by whoever finds it.
"""

from __future__ import annotations

import gc
import os
import time
from select import POLLIN, poll

from outlive.bundle.attempt import AttemptFiles, has_writer, open_done
from outlive.bundle.kernel import become_subreaper, name_process
from outlive.bundle.processes import KEEPER_NAME
from outlive.domain.errors import OutliveError
from outlive.domain.queueing import Turn, plan_turn
from outlive.keeper import owner
from outlive.keeper.keeper import answer, detach, run_now, wait_for_go
from outlive.keeper.launching import launch_adopter
from outlive.keeper.sleeping import fall_asleep, plan_from, read_note
from outlive.keeper.unbegun import read_call, refuse
from outlive.ledger.line import Line
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.reconcile import reconcile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from outlive.bundle.attempt import Held
    from outlive.domain.evidence import IntentKind
    from outlive.domain.queueing import Holder
    from outlive.keeper.plan import Plan

_MOST_DOORS = 200
_LEDGER_PAUSE, _LEDGER_TRIES = 1.0, 60
_SETTLING_PAUSE, _LONGEST_PAUSE = 0.002, 1.0


def wait_then_keep(plan: Plan, held: Held, go: int, ready: int) -> NoReturn:
    """The life of a keeper whose command may have to wait; told to its launcher as soon as that is clear."""
    owned_by = plan.surroundings.owner
    name_process(KEEPER_NAME)
    detach((*held.fds(), go, ready, *(() if owned_by is None else (owned_by,))))
    become_subreaper()
    if owned_by is not None:
        owner.remember(held.record, owned_by)
    called = wait_for_go(plan, held, go)
    if called is not None:
        _end(plan, held, called, None, ready)
    limit = plan.launch.queue_timeout
    until = None if limit is None else time.monotonic() + limit.total_seconds()
    _take_turn(plan.but(queue_until=until), held, ready)


def wake(note: int) -> NoReturn:
    """Go on where the keeper fell asleep."""
    gc.disable()
    name_process(KEEPER_NAME)
    told, held = read_note(note)
    plan = None
    for _ in range(_LEDGER_TRIES):
        try:
            with SqliteLedger(f"{told['home']}/ledger.sqlite", utc_now(), create=False) as ledger:
                task = ledger.task(told["task"])
        except OutliveError:
            time.sleep(_LEDGER_PAUSE)  # a full disk, a locked ledger: our place in line is not lost by it
            continue
        if task is not None and task.current.number == told["attempt"] and task.state == "queued":
            plan = plan_from(told, task.launch)
        break
    if plan is None:
        os._exit(0)
    _take_turn(plan, held, None)


def _take_turn(plan: Plan, held: Held, ready: int | None) -> NoReturn:
    """Begin if the turn has come, or wait for it."""
    pause = _SETTLING_PAUSE
    while True:
        if (called := _called(plan, held)) is not None:
            _end(plan, held, called, None, ready)
        turn, not_before = _look(plan)
        if turn is None:
            os._exit(0)  # somebody has ended it, who was not allowed to; there is nothing left to keep
        if turn.refused:
            _end(plan, held, "dependency", turn.refused, ready)
        if turn.has_come and not_before is None:
            if not _start(plan):
                os._exit(0)
            run_now(plan, held, ready)
        doors = _open_doors(plan, turn.must_end)
        if doors or not turn.must_end:
            answer(ready, "queued")
            moments = [moment for moment in (plan.queue_until, not_before) if moment is not None]
            fall_asleep(plan, held, doors=doors, how_many=turn.how_many, until=min(moments, default=None))
        # One of them is between letting go and being gone, or lives among processes that we cannot
        # see, so that nobody here may judge it: then this is all that can be done.
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


def _called(plan: Plan, held: Held) -> IntentKind | None:
    """Why it must not wait any longer: a cancel, its session's end, or that it took too long."""
    waiting = poll()
    waiting.register(held.control, POLLIN)
    if plan.surroundings.owner is not None:
        waiting.register(plan.surroundings.owner, POLLIN)
    for fd, _ in waiting.poll(0):
        if fd == plan.surroundings.owner:
            return "session_ended"
        if (called := read_call(held.control)) is not None:
            return called
    if plan.queue_until is not None and time.monotonic() >= plan.queue_until:
        return "queue_timeout"
    return None


def _look(plan: Plan) -> tuple[Turn | None, float | None]:
    """What the ledger says that we have to do; and until when (monotonic) a further attempt has to rest."""
    with SqliteLedger(plan.home.ledger, utc_now(), create=False) as ledger:
        line = Line(ledger)
        obstacles = line.obstacles(plan.launch.id)
        if obstacles is None or obstacles.attempt.number != plan.files.number:
            return None, None
        begins = obstacles.attempt.not_before
        left = 0.0 if begins is None else (begins - utc_now()).total_seconds()
        if left > 0:
            return Turn(), time.monotonic() + left  # not in line yet: nobody waits for one that rests
        if plan_turn(obstacles).should_join:
            line.join(plan.launch.id, plan.files.number)
            obstacles = line.obstacles(plan.launch.id) or obstacles
    return plan_turn(obstacles), None


def _start(plan: Plan) -> bool:
    with SqliteLedger(plan.home.ledger, utc_now(), create=False) as ledger:
        return ledger.start(plan.launch.id, plan.files.number, utc_now())


def _open_doors(plan: Plan, holders: Sequence[Holder]) -> list[int]:
    """The done FIFOs of those that we wait for; none if one of them is without a keeper, which is seen to."""
    doors: list[int] = []
    for holder in holders[:_MOST_DOORS]:
        try:
            door = open_done(AttemptFiles(plan.home.bundle(holder.task), holder.attempt))
        except OSError:
            door = None
        if door is not None:
            doors.append(door)
        if door is None or not has_writer(door):
            for each in doors:
                os.close(each)
            reconcile(plan.home, utc_now(), holder.task, launch_adopter)
            return []
    return doors


def _end(plan: Plan, held: Held, kind: IntentKind, why: str | None, ready: int | None) -> NoReturn:
    refuse(plan, held, kind, why)
    answer(ready, "ended")
    os._exit(0)

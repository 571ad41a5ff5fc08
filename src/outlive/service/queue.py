"""Waiting for one's turn: what a keeper does before its command may begin.

It looks at the ledger, and if it is not its turn, it sleeps (see `keeper.sleeping`): on the turn FIFO
of the one right before it in line, and once that has begun, on the done FIFOs of those that run.
It wakes when one is hung up, and looks again. Nobody is asked, nobody announces anything, and
nobody's death is waited out: the kernel hangs up, and an attempt that has no keeper any more is
settled or adopted by whoever finds it.
"""

from __future__ import annotations

import gc
import os
import time
from select import POLLIN, poll

from outlive.bundle.attempt import AttemptFiles, has_writer, open_done, open_turn
from outlive.bundle.home import Home
from outlive.bundle.kernel import name_process
from outlive.bundle.processes import KEEPER_NAME
from outlive.domain.errors import Broken, Unavailable
from outlive.domain.queueing import Turn, plan_turn
from outlive.keeper.keeper import answer, come_to_life, run_now, wait_for_go
from outlive.keeper.launching import launch_adopter
from outlive.keeper.note import plan_from
from outlive.keeper.sleeping import fall_asleep, read_note
from outlive.keeper.unbegun import read_call, refuse
from outlive.ledger.line import Line
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.reconcile import reconcile
from outlive.service.strays import read_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from outlive.bundle.attempt import Held
    from outlive.domain.evidence import IntentKind
    from outlive.domain.task import Launch
    from outlive.keeper.plan import Plan

_MOST_DOORS = 200
_LOST_LEDGER_PAUSE = 5.0
_SETTLING_PAUSE, _LONGEST_PAUSE = 0.002, 1.0


def wait_then_keep(plan: Plan, held: Held, go: int, ready: int) -> NoReturn:
    """The life of a keeper whose command may have to wait; told to its launcher as soon as that is clear."""
    come_to_life(plan, held, (go, ready))
    called = wait_for_go(plan, held, go)
    if called is not None:
        _end(plan, held, called, None, ready)
    _take_turn(plan, held, ready)


def wake(note: int) -> NoReturn:
    """Go on where the keeper fell asleep."""
    gc.disable()
    name_process(KEEPER_NAME)
    told, held = read_note(note)
    home = Home(told["home"], can_punch=told["can_punch"])
    launch = read_spec(home, told["task"]) or _recorded(home, told["task"])
    if launch is None:
        os._exit(0)
    _take_turn(plan_from(told, launch), held, None)


def _recorded(home: Home, task: str) -> Launch | None:
    with SqliteLedger(home.ledger, utc_now(), create=False) as ledger:
        found = ledger.task(task)
    return None if found is None else found.launch


def _take_turn(plan: Plan, held: Held, ready: int | None) -> NoReturn:
    """Begin if the turn has come, or wait for it."""
    pause = _SETTLING_PAUSE
    while True:
        try:
            plan = _try_turn(plan, held, ready)
        except (Unavailable, Broken):
            pass  # a full disk, a locked or lost ledger: our place in line is not lost by that
        # The ledger is in the way; or one that we wait for is between letting go and being gone, or
        # lives among processes that we cannot see, so that nobody here may judge it.
        answer(ready, "queued")
        ready = None
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


def _try_turn(plan: Plan, held: Held, ready: int | None) -> Plan:
    """Begin, end or fall asleep; returns if none of them is possible just now."""
    if (called := _called(plan, held)) is not None:
        _end(plan, held, called, None, ready)
    turn, not_before = _look(plan)
    if turn is None:
        # The ledger has no such row: it is lost. It may be rebuilt, and we wait for that.
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
    doors = _open_doors(plan, turn)
    if doors or not_before is not None:
        answer(ready, "queued")
        moments = [moment for moment in (plan.queue_until, not_before) if moment is not None]
        how_many = min(turn.how_many or 1, len(doors))
        fall_asleep(plan, held, doors=doors, how_many=how_many, until=min(moments, default=None))
    return plan


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
        task = ledger.task(plan.launch.id)
        if task is None:
            return None, None
        obstacles = line.obstacles(plan.launch.id)
        if obstacles is None or obstacles.attempt.number != plan.files.number:
            os._exit(0)  # somebody has ended it, who was not allowed to; there is nothing left to keep
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


def _open_doors(plan: Plan, turn: Turn) -> list[int]:
    """The FIFOs of those that we wait for; none if one of them is without a keeper, which is seen to."""
    doors: list[int] = []
    holders = (turn.must_begin,) if turn.must_begin else turn.must_end[:_MOST_DOORS]
    for holder in holders:
        files = AttemptFiles(plan.home.bundle(holder.task), holder.attempt)
        try:
            door = open_turn(files) if turn.must_begin else open_done(files)
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

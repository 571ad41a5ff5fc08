"""Waiting: one poll() that blocks until the kernel reports the exit of a keeper.

While a keeper runs, it has a FIFO of its attempt (the done FIFO) open for writing. A waiting process can poll a
thousand of these FIFOs at once. poll() reports a hang-up when the last writer has closed the FIFO.
"""

from __future__ import annotations

import os
import time
from resource import RLIMIT_NOFILE, getrlimit
from select import POLLIN, poll

from outlive.bundle.attempt import AttemptFiles, has_writer, open_done
from outlive.code_copy import carry_in_own_process
from outlive.domain.errors import Unavailable, UnknownTask
from outlive.domain.timestamps import timedelta
from outlive.ledger.kept_open import KeptOpenLedger
from outlive.linux.reader_gone import has_departed, wait_for_departure
from outlive.service.clock import utc_now
from outlive.service.maintenance.reconcile import reconcile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NotRequired, Self, TypedDict, Unpack

    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Task
    from outlive.service.maintenance.reconcile import Adopter

    class _Others(TypedDict):
        """Arguments of `wait_for` that `wait_for_all` passes on."""

        adopter: Adopter | None
        on_end: NotRequired[Callable[[Task], None] | None]
        tick: NotRequired[Callable[[], object] | None]
        departures: NotRequired[int | None]


# The number of descriptors that a wait for all tasks uses at a time. If fewer descriptors are free, it uses fewer.
_AT_ONCE = 512
_SETTLING_PAUSE, _LONGEST_PAUSE = 0.002, 1.0
# The longest sleep at a time, because poll() counts milliseconds in 32 bits.
DAY_MS = 86_400_000
_TICK_MS = 1000.0
_SHORT_MS = 300.0


def wait_for(
    home: Home,
    ids: Sequence[str],
    *,
    any_one: bool = False,
    timeout: timedelta | None = None,
    adopter: Adopter | None,
    on_end: Callable[[Task], None] | None = None,
    tick: Callable[[], object] | None = None,
    departures: int | None = None,
) -> bool:
    """Block until all tasks have ended, or with `any_one` until one task has ended.

    Returns False on timeout, or when the descriptor `departures` becomes readable because the caller's reader has gone
    away. `on_end` is called with each task that ends, and `tick` is called every second. Without `tick`, the process
    does not wake every second.
    """
    until = None if timeout is None else time.monotonic() + timeout.total_seconds()
    size = max(1, len(ids)) if any_one else _at_once()
    for start in range(0, len(ids), size):
        with _WaitSet(home, ids[start : start + size], adopter, departures) as waiting:
            while waiting.is_waiting:
                ended = waiting.wait_for_some(until, tick)
                if not ended:
                    return False
                for task in ended:
                    if on_end is not None:
                        on_end(task)
                if any_one:
                    return True
    return True


def wait_for_all(
    home: Home,
    tasks: Sequence[Task],
    members: Callable[[], Sequence[Task]] | None,
    *,
    any_one: bool = False,
    timeout: timedelta | None = None,
    **others: Unpack[_Others],
) -> tuple[bool, list[str]]:
    """Wait for tasks, and for tasks that join their group during the wait.

    `members` returns the group's tasks. The other arguments are those of `wait_for`. Returns whether the wait ended in
    time, and the ids of the awaited tasks.
    """
    until = None if timeout is None else time.monotonic() + timeout.total_seconds()
    while True:
        ids = [task.id for task in tasks]
        left = None if until is None else timedelta(seconds=max(0.0, until - time.monotonic()))
        in_time = wait_for(home, ids, any_one=any_one, timeout=left, **others)
        if not in_time or members is None or any_one:
            return in_time, ids
        tasks = members()
        if all(task.current.settled_at is not None for task in tasks):
            return True, [task.id for task in tasks]


def _at_once() -> int:
    """Return how many tasks this process can watch with its free descriptors."""
    free = getrlimit(RLIMIT_NOFILE)[0] - len(os.listdir("/proc/self/fd"))
    return max(1, min(_AT_ONCE, free - 16))


class _WaitSet:
    """A set of tasks that are waited for together."""

    def __init__(self, home: Home, ids: Sequence[str], adopter: Adopter | None, departures: int | None) -> None:
        self._home = home
        self._adopter = adopter
        self._departures = departures
        self._fifos: dict[int, tuple[str, int]] = {}
        self._ended: list[Task] = []
        self._pause = _SETTLING_PAUSE
        self._is_long = False
        self._ledger = KeptOpenLedger(home.ledger)
        self._poll = poll()
        if departures is not None:
            self._poll.register(departures, POLLIN)
        try:
            for task in self._read(ids):
                if task.current.settled_at is None:
                    self._watch(task)
                else:
                    self._ended.append(task)
        except BaseException:
            self.__exit__()
            raise
        # A keeper has its FIFO open while it runs. If the keeper closes the FIFO after we opened it, poll() reports a
        # hang-up. If the keeper closed it before, poll() reports nothing. So collect the FIFOs that no process has
        # open now.
        self._unkept = [fifo for fifo in self._fifos if not has_writer(fifo)]

    def _read(self, ids: Sequence[str]) -> list[Task]:
        """Return the tasks as the ledger has them now.

        The ledger stays open during the wait, because opening it again after a task has ended would delay the result.
        """
        if not ids:
            return []
        with self._ledger.use(utc_now()) as ledger:
            return [task for one in ids if (task := ledger.task(one)) is not None]

    @property
    def is_waiting(self) -> bool:
        return bool(self._fifos or self._ended)

    def wait_for_some(self, until: float | None, tick: Callable[[], object] | None) -> list[Task]:
        """Block until a further task ends, and return the ended tasks.

        Returns an empty list on timeout.
        """
        while not self._ended:
            self._settle_unkept()
            if self._ended:
                break
            left = None if until is None else (until - time.monotonic()) * 1000
            if (left is not None and left <= 0) or has_departed(self._departures):
                return []
            if self._unkept:
                # The keeper has exited and the attempt is not settled yet, or a keeper that adopts the attempt has not
                # opened the FIFO yet. A task in another PID namespace may stay in this state, because we cannot see
                # its processes.
                wait_for_departure(self._departures, self._pause if left is None else min(self._pause, left / 1000))
                self._pause = min(self._pause * 2, _LONGEST_PAUSE)
                self._unkept = [fifo for fifo in self._unkept if not has_writer(fifo)]
            else:
                self._pause = _SETTLING_PAUSE
                if tick is not None:
                    tick()
                    left = _TICK_MS if left is None else min(left, _TICK_MS)
                self._unkept = self._sleep(left)
        ended, self._ended = self._ended, []
        return ended

    def _sleep(self, left: float | None) -> list[int]:
        """Sleep until FIFOs hang up, and return these FIFOs.

        A hang-up shows that a keeper has exited. Returns an empty list on timeout.
        """
        if not self._is_long:
            # Before a long sleep, this process changes to its own copy of Outlive's modules (`carry_in_own_process`),
            # so that an upgrade cannot replace the modules. Most waits are short, and the copy takes some
            # milliseconds.
            self._is_long = True
            ready = self._poll.poll(_SHORT_MS if left is None else min(left, _SHORT_MS))
            if ready or (left is not None and left <= _SHORT_MS):
                return self._fifos_of(ready)
            carry_in_own_process(self._home.path)
            left = None if left is None else left - _SHORT_MS
        return self._fifos_of(self._poll.poll(left if left is None else min(left, DAY_MS)))

    def _fifos_of(self, ready: list[tuple[int, int]]) -> list[int]:
        return [fifo for fifo, _ in ready if fifo != self._departures]

    def _settle_unkept(self) -> None:
        """Check the tasks whose keeper has exited.

        Tasks that have ended are collected in `_ended`. The other tasks are settled or adopted.
        """
        tasks = {task.id: task for task in self._read([self._fifos[fifo][0] for fifo in self._unkept])}
        further = []
        for fifo in self._unkept:
            one, attempt = self._fifos[fifo]
            if one in tasks and _is_tried_again(tasks[one], attempt):
                self._close(fifo)
                further.append(self._watch(tasks[one]))
                continue
            if one in tasks and not _has_ended(tasks[one], attempt):
                self._ledger.close()  # the ledger may have been replaced: open it again
                reconcile(self._home, utc_now(), one, self._adopter)
                tasks.update((task.id, task) for task in self._read([one]))
            if one not in tasks:
                raise UnknownTask(
                    f"task {one} is no longer in the ledger",
                    "the ledger was replaced; the files of the task are still there",
                )
            if _has_ended(tasks[one], attempt):
                self._ended.append(tasks[one])
                self._close(fifo)
        self._unkept = [fifo for fifo in self._unkept if fifo in self._fifos]
        self._unkept += [fifo for fifo in further if not has_writer(fifo)]

    def _watch(self, task: Task) -> int:
        fifo = open_done_of(self._home, task)
        self._fifos[fifo] = (task.id, task.current.number)
        self._poll.register(fifo, POLLIN)
        return fifo

    def _close(self, fifo: int) -> None:
        self._poll.unregister(fifo)
        os.close(fifo)
        del self._fifos[fifo]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ledger.close()
        for fifo in self._fifos:
            os.close(fifo)


def _has_ended(task: Task, attempt: int) -> bool:
    """Return whether an attempt has ended and its keeper has started no retry."""
    return task.attempts[attempt - 1].settled_at is not None and not _is_tried_again(task, attempt)


def _is_tried_again(task: Task, attempt: int) -> bool:
    """Return whether the keeper has automatically retried a task after an attempt.

    The wait for the task must then continue.
    """
    return len(task.attempts) > attempt and task.attempts[attempt].automatic


def open_done_of(home: Home, task: Task) -> int:
    """Open the reading end of `done` of a task's newest attempt."""
    try:
        return open_done(AttemptFiles(home.bundle(task.id), task.current.number))
    except OSError as error:
        raise Unavailable(
            f"task {task.id} cannot be waited for: {error.strerror}",
            "too many files are open, or the files of the task were removed; `outlive show` shows its state",
        ) from error

"""Waiting: blocked in one poll() until the kernel says that a keeper is gone.

A waiter opens the done FIFO, makes sure that somebody still holds it, and sleeps. It makes no
system call until the last holder has let go, and it can sleep on a thousand FIFOs at once.
"""

from __future__ import annotations

import os
import time
from resource import RLIMIT_NOFILE, getrlimit
from select import POLLIN, poll

from outlive.bundle.attempt import AttemptFiles, has_writer, open_done
from outlive.domain.errors import Unavailable, UnknownTask
from outlive.domain.when import timedelta
from outlive.ledger.resting import RestingLedger
from outlive.service.clock import utc_now
from outlive.service.reconcile import reconcile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from outlive.bundle.home import Home
    from outlive.domain.task import Task
    from outlive.service.reconcile import Adopter

# Waiting for all of them needs no more than this many descriptors at a time, and will do with fewer.
_AT_ONCE = 512
_SETTLING_PAUSE, _LONGEST_PAUSE = 0.002, 1.0
# poll() counts milliseconds in 32 bits.
DAY_MS = 86_400_000
_TICK_MS = 1000.0


def wait_for(
    home: Home,
    ids: Sequence[str],
    *,
    any_one: bool = False,
    timeout: timedelta | None = None,
    adopter: Adopter | None,
    on_end: Callable[[Task], None] | None = None,
    tick: Callable[[], object] | None = None,
) -> bool:
    """Block until all (or any one) of the tasks have ended; False if the time was up first.

    `tick` is called every second, for somebody who watches; without it we are woken by the end alone.
    """
    until = None if timeout is None else time.monotonic() + timeout.total_seconds()
    size = max(1, len(ids)) if any_one else _at_once()
    for start in range(0, len(ids), size):
        with _Vigil(home, ids[start : start + size], adopter) as vigil:
            while vigil.is_waiting:
                ended = vigil.wait_for_some(until, tick)
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
    adopter: Adopter | None,
    on_end: Callable[[Task], None] | None = None,
    tick: Callable[[], object] | None = None,
) -> tuple[bool, list[str]]:
    """Like `wait_for`, also for those that join a group meanwhile, whose `members` are asked for again.

    Whether it was in time, and who was waited for.
    """
    until = None if timeout is None else time.monotonic() + timeout.total_seconds()
    while True:
        ids = [task.id for task in tasks]
        left = None if until is None else timedelta(seconds=max(0.0, until - time.monotonic()))
        in_time = wait_for(home, ids, any_one=any_one, timeout=left, adopter=adopter, on_end=on_end, tick=tick)
        if not in_time or members is None or any_one:
            return in_time, ids
        tasks = members()
        if all(task.current.settled_at is not None for task in tasks):
            return True, [task.id for task in tasks]


def _at_once() -> int:
    """How many can be waited for together with the descriptors that are left."""
    free = getrlimit(RLIMIT_NOFILE)[0] - len(os.listdir("/proc/self/fd"))
    return max(1, min(_AT_ONCE, free - 16))


class _Vigil:
    """A number of tasks that are waited for together."""

    def __init__(self, home: Home, ids: Sequence[str], adopter: Adopter | None) -> None:
        self._home = home
        self._adopter = adopter
        self._doors: dict[int, tuple[str, int]] = {}
        self._ended: list[Task] = []
        self._pause = _SETTLING_PAUSE
        self._ledger = RestingLedger(home.ledger)
        self._poll = poll()
        try:
            for task in self._read(ids):
                if task.current.settled_at is None:
                    self._watch(task)
                else:
                    self._ended.append(task)
        except BaseException:
            self.__exit__()
            raise
        # Whoever holds the FIFO after we opened it will hang it up; who let go before, never.
        self._unkept = [door for door in self._doors if not has_writer(door)]

    def _read(self, ids: Sequence[str]) -> list[Task]:
        """The tasks as they are.

        The ledger stays open while we sleep, because when we are woken everybody is in a hurry. A
        resting connection holds no lock.
        """
        if not ids:
            return []
        with self._ledger.use(utc_now()) as ledger:
            return [task for one in ids if (task := ledger.task(one)) is not None]

    @property
    def is_waiting(self) -> bool:
        return bool(self._doors or self._ended)

    def wait_for_some(self, until: float | None, tick: Callable[[], object] | None) -> list[Task]:
        """Block until at least one more has ended; empty if the time was up."""
        while not self._ended:
            self._settle_unkept()
            if self._ended:
                break
            left = None if until is None else (until - time.monotonic()) * 1000
            if left is not None and left <= 0:
                return []
            if self._unkept:
                # Somebody is between letting go and settling, or between adopting and keeping; or we
                # may not judge it (it lives among processes that we cannot see), which lasts.
                time.sleep(self._pause if left is None else min(self._pause, left / 1000))
                self._pause = min(self._pause * 2, _LONGEST_PAUSE)
                self._unkept = [door for door in self._unkept if not has_writer(door)]
            else:
                self._pause = _SETTLING_PAUSE
                if tick is not None:
                    tick()
                    left = _TICK_MS if left is None else min(left, _TICK_MS)
                self._unkept = [door for door, _ in self._poll.poll(left if left is None else min(left, DAY_MS))]
        ended, self._ended = self._ended, []
        return ended

    def _settle_unkept(self) -> None:
        """Doors that nobody holds: their tasks have ended, or need a reconciler."""
        tasks = {task.id: task for task in self._read([self._doors[door][0] for door in self._unkept])}
        further = []
        for door in self._unkept:
            one, attempt = self._doors[door]
            if one in tasks and _is_tried_again(tasks[one], attempt):
                self._close(door)
                further.append(self._watch(tasks[one]))
                continue
            if one in tasks and not _has_ended(tasks[one], attempt):
                self._ledger.close()  # it may not be the ledger any more, but one that was moved aside
                reconcile(self._home, utc_now(), one, self._adopter)
                tasks.update((task.id, task) for task in self._read([one]))
            if one not in tasks:
                raise UnknownTask(
                    f"task {one} is no longer in the ledger", "the ledger was replaced; its bundle is still in place"
                )
            if _has_ended(tasks[one], attempt):
                self._ended.append(tasks[one])
                self._close(door)
        self._unkept = [door for door in self._unkept if door in self._doors]
        self._unkept += [door for door in further if not has_writer(door)]

    def _watch(self, task: Task) -> int:
        door = _open(self._home, task)
        self._doors[door] = (task.id, task.current.number)
        self._poll.register(door, POLLIN)
        return door

    def _close(self, door: int) -> None:
        self._poll.unregister(door)
        os.close(door)
        del self._doors[door]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ledger.close()
        for door in self._doors:
            os.close(door)


def _has_ended(task: Task, attempt: int) -> bool:
    """Whether the attempt that was waited for has; a later one may have been asked for meanwhile."""
    return task.attempts[attempt - 1].settled_at is not None and not _is_tried_again(task, attempt)


def _is_tried_again(task: Task, attempt: int) -> bool:
    """Whether its keeper tries the task again by itself: then that is what is waited for."""
    return len(task.attempts) > attempt and task.attempts[attempt].automatic


def _open(home: Home, task: Task) -> int:
    try:
        return open_done(AttemptFiles(home.bundle(task.id), task.current.number))
    except OSError as error:
        raise Unavailable(
            f"task {task.id} cannot be waited for: {error.strerror}",
            "too many files are open, or its bundle was removed by hand; `outlive show` tells its state",
        ) from error

"""Keepers that take the next attempt after a short attempt has ended.

A new process first copies every memory page that it touches. This copying is most of the cost of a short task. So a
spawner, a process which launches many tasks, keeps a channel to its newest keepers. Each of these keepers keeps a
channel to its witness. A keeper reports that it is idle when it has no process or descriptor of its attempt left. A
keeper never has two attempts at once, and never has rights that its spawner does not have.

Only the spawner dismisses an idle keeper, by closing the channel. So no attempt is sent to a keeper that is about to
exit.
"""

from __future__ import annotations

import json  # noqa: F401 - reading a task's launch data imports json; without this line, every forked keeper would load json again
import marshal
import os
from _socket import MSG_NOSIGNAL, socket, socketpair
from resource import RLIMIT_NOFILE, getrlimit
from select import POLLIN, poll

from outlive.bundle.attempt import HeldFiles
from outlive.keeper.keeper import become_keeper, keep_until_settled
from outlive.keeper.plan import plan_from
from outlive.keeper.pool.idle_witness import IdleWitness, has_one_thread
from outlive.ledger.rows import launch_from, launch_row
from outlive.linux.fd_passing import give, take
from outlive.linux.processes import close_all_but, is_stopped, open_marker
from outlive.linux.syscalls import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from outlive.keeper.plan import Plan

_MOST_CHANNELS = 8
_MOST_LIVES = 50  # garbage collection is off in a keeper, so its memory grows with each attempt
_PATIENCE_S = 1.0
_DESCRIPTORS = 32  # with a lower limit of descriptors, the channels to keepers would use up descriptors that tasks need
_NUMBER = 4
_HELD = ("lock", "control", "done", "record", "output")


class IdleKeepers:
    """The channels of a process that starts many keepers to its newest keepers.

    The oldest of these keepers comes first.
    """

    def __init__(self) -> None:
        self._channels: dict[int, socket] = {}
        self._free: dict[int, int] = {}
        self.have_room = getrlimit(RLIMIT_NOFILE)[0] >= _DESCRIPTORS

    @property
    def are_there(self) -> bool:
        """Whether a keeper is idle, or will be idle after its present attempt."""
        return bool(self._channels)

    def new_channel(self) -> int:
        """Open a channel. Return the keeper's end of it, which the caller must close."""
        while len(self._channels) >= _MOST_CHANNELS:
            self._drop(next(iter(self._channels)))  # the oldest keeper has a long task, so stop using this keeper
        ours, its = socketpair()
        ours.settimeout(_PATIENCE_S)
        self._channels[ours.fileno()] = ours
        return its.detach()

    def give(self, plan: Plan, held: HeldFiles, go: int, ready: int) -> bool:
        """Send an attempt to an idle keeper. Return False if no keeper is idle.

        `go` and `ready` are the descriptors over which the launcher and the keeper notify each other.
        """
        note = marshal.dumps({**plan.note(), "launch": launch_row(plan.launch)})
        while (channel := self._idle_channel()) is not None:
            try:
                give(channel, note, (*(getattr(held, name) for name in _HELD), go, ready))
            except OSError:
                self._drop(channel.fileno())  # the keeper was killed or stopped, and will not begin the attempt
                continue
            return True
        return False

    def _idle_channel(self) -> socket | None:
        waiting = poll()
        for fd in self._channels:
            waiting.register(fd, POLLIN)
        for fd, _ in waiting.poll(0):
            try:
                message = self._channels[fd].recv(_NUMBER)
            except OSError:
                message = b""
            if message:
                self._free[fd] = int.from_bytes(message, "big")
            else:
                self._drop(fd)
        while self._free:
            fd = next(iter(self._free))
            pid = self._free.pop(fd)
            if not is_stopped(pid):
                return self._channels[fd]
            self._drop(fd)
        return None

    def _drop(self, fd: int) -> None:
        self._channels.pop(fd).close()
        self._free.pop(fd, None)

    def dismiss(self) -> None:
        """Dismiss all keepers. A keeper that runs an attempt exits after it."""
        for fd in list(self._channels):
            self._drop(fd)


def keep_repeatedly(channel: int, plan: Plan, held: HeldFiles, go: int, ready: int) -> NoReturn:
    """Run one attempt after the other, as long as the parent sends attempts.

    The keeper exits after a fixed number of attempts, and after an attempt that may have left a process or a thread.
    The parent is connected by `channel`.
    """
    become_keeper(plan, held, (go, ready, channel))
    marker = open_marker()
    end, idle_witness = socket(fileno=channel), IdleWitness((channel,), marker)
    for _ in range(_MOST_LIVES - 1):
        is_over = keep_until_settled(plan, held, go, ready, idle_witness.start)
        if not (is_over and idle_witness.is_only_child() and has_one_thread()):
            os._exit(0)  # a process or thread of the attempt may be left, so do not use this keeper again
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # `keep_cap` sets SIGCHLD to be ignored
        close_all_but((channel, marker, *idle_witness.fds()))
        plan, held, go, ready = _wait_for_next(end)
    keep_until_settled(plan, held, go, ready, idle_witness.start)
    os._exit(0)


def _wait_for_next(channel: socket) -> tuple[Plan, HeldFiles, int, int]:
    """Report that this keeper is idle, and wait for the next attempt.

    Exits if the channel is closed.
    """
    try:
        channel.send(os.getpid().to_bytes(_NUMBER, "big"), MSG_NOSIGNAL)
    except OSError:
        os._exit(0)
    given = take(channel)
    if given is None:
        os._exit(0)
    note = marshal.loads(given[0])  # noqa: S302 - the parent of this keeper wrote these data
    *fds, go, ready = given[1]
    lock, control, done, record, output = fds
    held = HeldFiles(lock=lock, control=control, done=done, record=record, output=output)
    return plan_from(note, launch_from(note["launch"])), held, go, ready

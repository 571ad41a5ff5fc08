"""Keepers that are used again: one that has seen a short attempt through takes the next one.

A new process copies every page that it touches first, which is most of what a short task costs. So a
spawner, which launches one task after the other, keeps a channel to its newest keepers, and such a
keeper one to its witness. A keeper that has settled its attempt, and has nothing and nobody left of it,
says so and sleeps; it is sent the plan and the descriptors of the next attempt, and is in no way
different from a new keeper then. It never has two attempts, nor rights that its spawner does not have.

Only the spawner decides that it is not needed any more, by closing the channel: what it sends is
never sent to somebody who is about to go.
"""

from __future__ import annotations

import json  # noqa: F401 - a launch is read with it, and every keeper would load it anew
import marshal
import os
from _socket import MSG_NOSIGNAL, socket, socketpair
from resource import RLIMIT_NOFILE, getrlimit
from select import POLLIN, poll

from outlive.bundle.attempt import Held
from outlive.bundle.kernel import signal
from outlive.bundle.passing import give, take
from outlive.bundle.processes import close_all_but, is_stopped, wear_badge
from outlive.keeper.keeper import come_to_life, keep_until_settled
from outlive.keeper.note import note_of, plan_from
from outlive.keeper.witness_at_hand import WitnessAtHand, has_one_thread
from outlive.ledger.rows import launch_from, launch_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from outlive.keeper.plan import Plan

_MOST_CHANNELS = 8
_MOST_LIVES = 50  # nobody collects garbage in a keeper
_PATIENCE_S = 1.0
_DESCRIPTORS = 32  # with fewer, channels would take those that the tasks themselves need
_NUMBER = 4
_HELD = ("lock", "control", "done", "record", "output")


class Keepers:
    """The spawner's side: channels to the keepers it has made last, the oldest first."""

    def __init__(self) -> None:
        self._channels: dict[int, socket] = {}
        self._free: dict[int, int] = {}
        self.have_room = getrlimit(RLIMIT_NOFILE)[0] >= _DESCRIPTORS

    @property
    def are_there(self) -> bool:
        """Whether anybody waits for us, or will."""
        return bool(self._channels)

    def new_channel(self) -> int:
        """The keeper's end of a new channel; the caller's to close once the keeper has it."""
        while len(self._channels) >= _MOST_CHANNELS:
            self._drop(next(iter(self._channels)))  # it has a long task: that keeper is not for us
        ours, its = socketpair()
        ours.settimeout(_PATIENCE_S)
        self._channels[ours.fileno()] = ours
        return its.detach()

    def give(self, plan: Plan, held: Held, go: int, ready: int) -> bool:
        """Give an attempt to somebody who is free; False if nobody is."""
        note = marshal.dumps({**note_of(plan), "launch": launch_row(plan.launch)})
        while (channel := self._somebody_free()) is not None:
            try:
                give(channel, note, (*(getattr(held, name) for name in _HELD), go, ready))
            except OSError:
                self._drop(channel.fileno())  # killed, or stopped: whatever it got it will not begin
                continue
            return True
        return False

    def _somebody_free(self) -> socket | None:
        waiting = poll()
        for fd in self._channels:
            waiting.register(fd, POLLIN)
        for fd, _ in waiting.poll(0):
            try:
                said = self._channels[fd].recv(_NUMBER)
            except OSError:
                said = b""
            if said:
                self._free[fd] = int.from_bytes(said, "big")
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
        """Let all of them go, those too that are not free yet."""
        for fd in list(self._channels):
            self._drop(fd)


def keep_one_after_the_other(channel: int, plan: Plan, held: Held, go: int, ready: int) -> NoReturn:
    """A keeper's life: one attempt, and the next if it is asked to."""
    come_to_life(plan, held, (go, ready, channel))
    badge = wear_badge()
    end, at_hand = socket(fileno=channel), WitnessAtHand((channel,), badge)
    for life in range(1, _MOST_LIVES + 1):
        if not keep_until_settled(plan, held, go, ready, at_hand) or not has_one_thread() or life == _MOST_LIVES:
            break  # somebody of it lives on, whom we may have to answer, or we are too old
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # whoever looked after what was left behind has ignored it
        close_all_but((channel, badge, *at_hand.fds()))
        plan, held, go, ready = _wait_for_next(end)
    os._exit(0)


def _wait_for_next(channel: socket) -> tuple[Plan, Held, int, int]:
    """Say that we are free, and sleep until we are not; gone if nobody wants us."""
    try:
        channel.send(os.getpid().to_bytes(_NUMBER, "big"), MSG_NOSIGNAL)
    except OSError:
        os._exit(0)
    given = take(channel)
    if given is None:
        os._exit(0)
    note = marshal.loads(given[0])  # noqa: S302 - our own spawner wrote it
    *fds, go, ready = given[1]
    held = Held(**dict(zip(_HELD, fds, strict=True)))
    return plan_from(note, launch_from(note["launch"])), held, go, ready

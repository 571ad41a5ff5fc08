"""Ending a tree of processes: in steps, to the last of them, and never anybody else."""

from __future__ import annotations

import os
import time
from select import POLLIN, poll

from outlive.bundle.kernel import signal
from outlive.bundle.processes import start_ticks, stat_fields
from outlive.domain.value import Value
from outlive.keeper.tree import Member, descendants, heirs_children, keeps_another_task, look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# Interrupt lets a program clean up as at a terminal; kill is what cannot be refused.
STEPS = ((signal.SIGINT, 2.0), (signal.SIGTERM, 3.0), (signal.SIGKILL, 2.0))
_LOOK_AGAIN_MS = 50
_MOST_WATCHED = 64
_GLANCES, _BETWEEN_GLANCES = 5, 0.002
_CHASE_S = 2.0


class Ended(Value):
    """What came of ending a tree."""

    told: frozenset[int]
    """Whom a signal of ours has reached."""
    hiding: frozenset[int] = frozenset()
    """Who came and went at the very end: something forks and exits in turn."""


def end_tree(
    members: Callable[[], list[Member]],
    is_foreign: Callable[[int], bool] | None = None,
    meanwhile: Callable[[], object] = lambda: None,
    heirs: tuple[int, ...] = (),
) -> Ended:
    """Interrupt, terminate, kill all members, those born meanwhile too; `meanwhile` is done now and then.

    Whoever was seen once is remembered: when its parents end it may move out of sight.
    """
    known: dict[Member, None] = {}
    reached: set[int] = set()
    for number, grace in STEPS:
        until = time.monotonic() + grace
        told: set[Member] = set()
        while alive := _still_alive(known, members, is_foreign):
            if time.monotonic() >= until:
                break
            for member in alive:
                if member not in told or number == signal.SIGKILL:
                    told.add(member)
                    if _tell(member, number):
                        reached.add(member.pid)
            meanwhile()
            _await_any_end(alive)
    # Also if somebody is still to be seen: it may be another one at every look.
    return Ended(told=frozenset(reached), hiding=_chase(heirs, is_foreign or keeps_another_task))


def _chase(heirs: tuple[int, ...], is_foreign: Callable[[int], bool]) -> frozenset[int]:
    """Kill what is another process at every look; whoever still came and went when our patience was over.

    Each of them is a child of an heir when it is seen, and is killed only if it still is one: no
    stranger ever is.
    """
    until = time.monotonic() + _CHASE_S
    before = heirs_children(heirs, is_foreign)
    quiet = 0
    while quiet < _GLANCES:
        time.sleep(_BETWEEN_GLANCES)
        now = heirs_children(heirs, is_foreign) - frozenset(heirs)
        # Who is new has a living kin somewhere, even if it is gone itself when we look at it.
        suspects = frozenset(pid for pid in now if pid not in before or look(pid) is not None)
        before = now
        quiet = 0 if suspects else quiet + 1
        if suspects and time.monotonic() > until:
            return suspects
        for pid in suspects:
            _kill_child(pid, heirs)
    return frozenset()


def _kill_child(pid: int, heirs: tuple[int, ...]) -> None:
    """Kill a child of an heir; if it is our own, dead or alive, then all of its process group.

    A group is killed as a whole: nobody escapes by forking meanwhile. Nor can its number be anybody
    else's, as long as it has a member that only we could reap.
    """
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        fields = stat_fields(pid)
        parent, group = (int(fields[1]), int(fields[2])) if fields else (0, 0)
        if parent == os.getpid() and group != os.getpgrp():
            os.killpg(group, signal.SIGKILL)
        elif parent in heirs:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except OSError:
        pass  # it is gone, and perhaps has left another one
    finally:
        os.close(pidfd)


def _still_alive(
    known: dict[Member, None], members: Callable[[], list[Member]], is_foreign: Callable[[int], bool] | None
) -> list[Member]:
    """Who lives. Nobody is only believed when it was seen several times: what forks and exits in turn hides."""
    for glance in range(_GLANCES):
        if glance:
            time.sleep(_BETWEEN_GLANCES)
        known.update(dict.fromkeys(members()))
        for member in list(known):
            # It may have become a keeper of something else since it was seen first.
            if look(member.pid) == member and not (is_foreign or keeps_another_task)(member.pid):
                known.update(dict.fromkeys(descendants(member.pid, is_foreign=is_foreign)))
            else:
                del known[member]
        if known:
            break
    return list(known)


def _tell(member: Member, number: int) -> bool:
    """Signal exactly this process, or nobody; whether the signal went out."""
    try:
        pidfd = os.pidfd_open(member.pid)
    except OSError:
        return False
    try:
        # The number may have been given away between the look and the open. The pidfd pins one
        # process now; only if that is still the one we saw does the signal go out.
        if os.fstat(pidfd).st_ino != member.inode or start_ticks(member.pid) != member.start:
            return False
        signal.pidfd_send_signal(pidfd, number)
    except OSError:
        return False  # it is gone, or not ours to signal
    finally:
        os.close(pidfd)
    return True


def _await_any_end(members: list[Member]) -> None:
    """Sleep until one of them ends, or for a moment, since new ones may have been born."""
    waiting, opened = poll(), []
    try:
        for member in members[:_MOST_WATCHED]:
            try:
                opened.append(os.pidfd_open(member.pid))
            except OSError:
                continue
            waiting.register(opened[-1], POLLIN)
        waiting.poll(_LOOK_AGAIN_MS)
    finally:
        for pidfd in opened:
            os.close(pidfd)

"""The ending of a process tree by signals, until all its processes have ended."""

from __future__ import annotations

import os
import time
from select import POLLIN, poll

from outlive.domain.value import Value
from outlive.keeper.process_tree import Member, descendants, heirs_children, keeps_another_task, look
from outlive.linux.processes import start_ticks, stat_fields
from outlive.linux.syscalls import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# SIGINT lets a program clean up as after Ctrl-C. SIGKILL is the last signal, because a program cannot ignore it.
STEPS = ((signal.SIGINT, 2.0), (signal.SIGTERM, 3.0), (signal.SIGKILL, 2.0))
_LOOK_AGAIN_MS = 50
_MOST_WATCHED = 64
_GLANCES, _BETWEEN_GLANCES = 5, 0.002
_CHASE_S = 2.0


class Ended(Value):
    """The result of `end_tree`: which processes got a signal, and which are left."""

    told: frozenset[int]
    """The pids of the processes that got a signal from `end_tree`."""
    hiding: frozenset[int] = frozenset()
    """The pids of processes that evaded the signals, because each of them forks a new process and exits."""


def end_tree(
    members: Callable[[], list[Member]],
    is_foreign: Callable[[int], bool] | None = None,
    meanwhile: Callable[[], object] = lambda: None,
    heirs: tuple[int, ...] = (),
) -> Ended:
    """End all processes of a tree with SIGINT, then SIGTERM, then SIGKILL.

    `members` returns the present processes of the tree. Processes that join the tree meanwhile are ended, too. A
    process for which `is_foreign` returns True belongs to another task, and gets no signal. `meanwhile` is called
    repeatedly as long as processes of the tree are alive. `heirs` are the pids of the task's keeper and witness.
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
    # `_kill_forking` is needed even after SIGKILL: a process that repeatedly forks and exits has a new pid at each
    # check above, and may exit before the signal arrives.
    return Ended(told=frozenset(reached), hiding=_kill_forking(heirs, is_foreign or keeps_another_task))


def _kill_forking(heirs: tuple[int, ...], is_foreign: Callable[[int], bool]) -> frozenset[int]:
    """Kill processes that repeatedly fork and exit. Return the pids that are left.

    `heirs` are the pids of the task's keeper and witness, which inherit the orphans of the task. Only children of these
    two are killed, so no process outside of the task is killed.
    """
    until = time.monotonic() + _CHASE_S
    before = heirs_children(heirs, is_foreign)
    quiet = 0
    while quiet < _GLANCES:
        time.sleep(_BETWEEN_GLANCES)
        now = heirs_children(heirs, is_foreign) - frozenset(heirs)
        # A new child means that a process is still forking. The new child may have ended already.
        suspects = frozenset(pid for pid in now if pid not in before or look(pid) is not None)
        before = now
        quiet = 0 if suspects else quiet + 1
        if suspects and time.monotonic() > until:
            return suspects
        for pid in suspects:
            _kill_child(pid, heirs)
    return frozenset()


def _kill_child(pid: int, heirs: tuple[int, ...]) -> None:
    """Kill a child of the keeper or of the witness.

    `heirs` are the pids of the keeper and the witness. If the process is a child of the calling process, its whole
    process group is killed, because no member of a group escapes by forking. The number of the group cannot be reused
    meanwhile, because only the calling process can reap the child.
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
        pass  # the child has ended, and perhaps has forked another process
    finally:
        os.close(pidfd)


def _still_alive(
    known: dict[Member, None], members: Callable[[], list[Member]], is_foreign: Callable[[int], bool] | None
) -> list[Member]:
    """Return the processes of the tree that are still alive.

    `known` are the processes found before, and `members` finds the present ones. A process for which `is_foreign`
    returns True belongs to another task and is left out. A scan that finds no process is repeated, because a scan can
    miss a process that forks.
    """
    for glance in range(_GLANCES):
        if glance:
            time.sleep(_BETWEEN_GLANCES)
        known.update(dict.fromkeys(members()))
        for member in list(known):
            # The process may have become a keeper of another task since it was first seen.
            if look(member.pid) == member and not (is_foreign or keeps_another_task)(member.pid):
                known.update(dict.fromkeys(descendants(member.pid, is_foreign=is_foreign)))
            else:
                del known[member]
        if known:
            break
    return list(known)


def _tell(member: Member, number: int) -> bool:
    """Signal a process of the tree, but never a later process with the same pid.

    Returns whether the signal was sent. `number` is the number of the signal.
    """
    try:
        pidfd = os.pidfd_open(member.pid)
    except OSError:
        return False
    try:
        # Another process may have got the pid since the member was found. The pidfd refers to one fixed process. The
        # signal is sent only if this process is the member that was found.
        if os.fstat(pidfd).st_ino != member.inode or start_ticks(member.pid) != member.start:
            return False
        signal.pidfd_send_signal(pidfd, number)
    except OSError:
        return False  # the process has ended, or we may not signal it
    finally:
        os.close(pidfd)
    return True


def _await_any_end(members: list[Member]) -> None:
    """Sleep until a member ends, but only briefly, because new members may appear."""
    waiting, pidfds = poll(), pidfds_of(members)
    try:
        for pidfd in pidfds:
            waiting.register(pidfd, POLLIN)
        waiting.poll(_LOOK_AGAIN_MS)
    finally:
        for pidfd in pidfds:
            os.close(pidfd)


def pidfds_of(members: list[Member]) -> list[int]:
    """Return one pidfd for each of the first members.

    A pidfd is readable when its process has ended. Members that have already ended are left out. The caller closes the
    pidfds.
    """
    opened = []
    for member in members[:_MOST_WATCHED]:
        try:
            opened.append(os.pidfd_open(member.pid))
        except OSError:
            continue
    return opened

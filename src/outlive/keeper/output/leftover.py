"""The size limit of the output after the end of a task.

Processes that the task has left behind may still write. The keeper of the settled task continues, without any lock,
until no process of the task has the output open.
"""

from __future__ import annotations

import os
from select import POLLIN, poll

from outlive.keeper.kill_tree import pidfds_of
from outlive.linux.processes import opened_by
from outlive.linux.syscalls import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from outlive.keeper.output.cap import OutputCap
    from outlive.keeper.process_tree import Member


def keep_cap(watch: OutputCap, path: str, members: Callable[[], list[Member]]) -> None:
    """Apply the output's size limit until no process of the task has it open.

    `watch` checks the size of the output file, which is at `path`. `members` returns the processes that are left.
    """
    watch.begin()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel then reaps the children, whose exit status is not needed
    while writers := [member for member in members() if _has_open(member.pid, path)]:
        waiting, pidfds = poll(), pidfds_of(writers)
        try:
            for fd in (watch.wake or 0, *pidfds):
                waiting.register(fd, POLLIN)
            _watch_until(watch, waiting, pidfds)
        finally:
            for pidfd in pidfds:
                os.close(pidfd)
    watch.final()


def _watch_until(watch: OutputCap, waiting: poll, ends: list[int]) -> None:
    """Apply the output's size limit until one of the writing processes ends.

    `ends` are pidfds of these processes, and `waiting` polls them.
    """
    while True:
        ready = {fd for fd, _ in waiting.poll(None if watch.next_look is None else watch.next_look * 1000)}
        if watch.wake in ready:
            watch.notice_write()
        elif not ready:
            watch.look()
        if not ends or any(end in ready for end in ends):
            return


def _has_open(pid: int, path: str) -> bool:
    try:
        return path in opened_by(pid)
    except OSError:
        return False

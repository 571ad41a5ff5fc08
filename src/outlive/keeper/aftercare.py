"""Aftercare: the cap of an output holds for as long as somebody can write to it.

A command may leave processes behind that go on writing. The task has ended and is settled; its
keeper stays, without any lock, until nobody has the output open any more.
"""

from __future__ import annotations

import os
from select import POLLIN, poll

from outlive.bundle.kernel import signal
from outlive.bundle.processes import opened_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from outlive.keeper.cap import OutputWatch
    from outlive.keeper.tree import Member

_MOST_WATCHED = 64


def keep_cap(watch: OutputWatch, path: str, members: Callable[[], list[Member]]) -> None:
    """Until nobody of those left behind has the output open."""
    watch.begin()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # they are our children now, and nobody asks how they end
    while writers := [member for member in members() if _has_open(member.pid, path)]:
        waiting, opened = poll(), []
        waiting.register(watch.wake or 0, POLLIN)
        try:
            for member in writers[:_MOST_WATCHED]:
                try:
                    opened.append(os.pidfd_open(member.pid))
                except OSError:
                    continue
                waiting.register(opened[-1], POLLIN)
            _watch_until(watch, waiting, opened)
        finally:
            for pidfd in opened:
                os.close(pidfd)
    watch.final()


def _watch_until(watch: OutputWatch, waiting: poll, ends: list[int]) -> None:
    """Cap the output until one of those who write it is gone."""
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

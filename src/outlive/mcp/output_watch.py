"""The notification of subscribed clients when a task's output grows.

Waiting happens in the event loop and uses no thread.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import anyio

from outlive.bundle.attempt import has_writer, open_done
from outlive.linux.syscalls import watch_modifications
from outlive.mcp.threads import cross
from outlive.mcp.tools.visible_tasks import own_task
from outlive.service.tasks.read import files_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Self

    from outlive.bundle.attempt import AttemptFiles
    from outlive.mcp.tools.tool import Call

# A command may write a thousand times in a second. For a client, two notifications in a second are enough.
_PAUSE_S = 0.5


async def watch(call: Call, task_id: str, notify: Callable[[], Awaitable[None]], ready: Callable[[], None]) -> None:
    """Call `notify` after each change of a task's output, and once when the task ends.

    `ready` is called as soon as no further change can be missed.
    """
    while (task := await cross(own_task, call, task_id)).current.settled_at is None:
        with _Watch(files_of(call.home, task)) as growth:
            ready()
            while await growth.wait():
                await notify()
                await anyio.sleep(_PAUSE_S)
        # The output can grow no more, but the task has not ended: either the keeper is about to record the end, or a
        # further attempt begins. The client is notified in both cases.
        await notify()
        await anyio.sleep(_PAUSE_S)


class _Watch:
    """The output of one attempt, and whether a process can still write to it."""

    def __init__(self, files: AttemptFiles) -> None:
        self._done = open_done(files)
        # None if the file cannot be watched. Then the client is notified only of the end of the attempt.
        self._growth = watch_modifications(files.output)

    async def wait(self) -> bool:
        """Wait until the output has grown.

        Returns False if the output cannot grow any more.
        """
        while has_writer(self._done):
            await _first_of(*(fd for fd in (self._done, self._growth) if fd is not None))
            if self._growth is not None and _drain(self._growth):
                return True
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in (self._done, self._growth):
            if fd is not None:
                os.close(fd)


async def _first_of(*descriptors: int) -> None:
    """Wait until at least one of the file descriptors is readable."""
    async with anyio.create_task_group() as group:

        async def until(fd: int) -> None:
            await anyio.wait_readable(fd)
            group.cancel_scope.cancel()

        for fd in descriptors:
            group.start_soon(until, fd)


def _drain(watch: int) -> bool:
    try:
        return bool(os.read(watch, 1 << 14))
    except BlockingIOError:
        return False

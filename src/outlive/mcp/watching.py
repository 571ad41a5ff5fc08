"""Watching an output grow, for a client that wants to be told: woken by the kernel, without a thread."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import anyio

from outlive.bundle.attempt import has_writer, open_done
from outlive.bundle.kernel import watch_modifications
from outlive.mcp.crossing import cross
from outlive.mcp.tools.scope import own_task
from outlive.service.view import files_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Self

    from outlive.bundle.attempt import AttemptFiles
    from outlive.mcp.tools.tool import Call

# A command may write a thousand times a second; a client that reads again twice a second misses nothing.
_BREATH_S = 0.5


async def watch(call: Call, task_id: str, tell: Callable[[], Awaitable[None]], ready: Callable[[], None]) -> None:
    """Tell of every change of a task's output, until it has ended and that was told, too.

    `ready` is called when no change can escape us any more.
    """
    while (task := await cross(own_task, call, task_id)).current.settled_at is None:
        with _Watch(files_of(call.home, task)) as growth:
            ready()
            while await growth.wait():
                await tell()
                await anyio.sleep(_BREATH_S)
        # Somebody is between letting go and settling, or a further attempt begins: in both cases something changed.
        await tell()
        await anyio.sleep(_BREATH_S)


class _Watch:
    """One attempt's output, and whether somebody can still add to it."""

    def __init__(self, files: AttemptFiles) -> None:
        self._done = open_done(files)
        self._growth = watch_modifications(files.output)  # without it, the end is told all the same

    async def wait(self) -> bool:
        """Until it has grown; False if nobody is left who could add to it."""
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
    """Until one of them can be read."""
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

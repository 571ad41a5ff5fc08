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

    from outlive.bundle.attempt import AttemptFiles
    from outlive.mcp.tools.tool import Call

# A command may write a thousand times a second; a client that reads again twice a second misses nothing.
_BREATH_S = 0.5


async def watch(call: Call, task_id: str, tell: Callable[[], Awaitable[None]]) -> None:
    """Tell of every change of a task's output, until it has ended and that was told, too."""
    while True:
        task = await cross(own_task, call, task_id)
        if task.current.settled_at is not None:
            return
        await _watch_attempt(files_of(call.home, task), tell)
        await tell()
        await anyio.sleep(_BREATH_S)  # somebody is between letting go and settling


async def _watch_attempt(files: AttemptFiles, tell: Callable[[], Awaitable[None]]) -> None:
    done, growth = open_done(files), _watch(files.output)
    try:
        while has_writer(done):
            await _first_of(*(fd for fd in (done, growth) if fd is not None))
            if growth is not None and _drain(growth):
                await tell()
                await anyio.sleep(_BREATH_S)
    finally:
        for fd in (done, growth):
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


def _watch(path: str) -> int | None:
    try:
        return watch_modifications(path)
    except OSError:
        return None  # the user has none left: the end is told all the same


def _drain(watch: int) -> bool:
    try:
        return bool(os.read(watch, 1 << 14))
    except BlockingIOError:
        return False

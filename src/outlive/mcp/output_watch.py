"""The notification of subscribed clients when a task's output grows.

Waiting happens in the event loop and uses no thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from outlive.mcp.threads import cross
from outlive.mcp.tools.visible_tasks import own_task
from outlive.service.tasks.follow_output import OutputWatch
from outlive.service.tasks.read import files_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from outlive.mcp.tools.tool import Call

# A command may write a thousand times in a second. For a client, two notifications in a second are enough.
_PAUSE_S = 0.5


async def watch(call: Call, task_id: str, notify: Callable[[], Awaitable[None]], ready: Callable[[], None]) -> None:
    """Call `notify` after each change of a task's output, and once when the task ends.

    `ready` is called as soon as no further change can be missed.
    """
    while (task := await cross(own_task, call, task_id)).current.settled_at is None:
        with OutputWatch(files_of(call.home, task)) as output:
            ready()
            while await _wait_for_growth(output):
                await notify()
                await anyio.sleep(_PAUSE_S)
        # The output can grow no more, but the task has not ended: either the keeper is about to record the end, or a
        # further attempt begins. The client is notified in both cases.
        await notify()
        await anyio.sleep(_PAUSE_S)


async def _wait_for_growth(output: OutputWatch) -> bool:
    """Wait until the output has grown.

    Returns False if the output cannot grow any more. If the file cannot be watched, the wait always ends in this way.
    """
    while output.is_held():
        await _first_of(*output.fds)
        if output.has_grown():
            return True
    return False


async def _first_of(*descriptors: int) -> None:
    """Wait until at least one of the file descriptors is readable."""
    async with anyio.create_task_group() as group:

        async def until(fd: int) -> None:
            await anyio.wait_readable(fd)
            group.cancel_scope.cancel()

        for fd in descriptors:
            group.start_soon(until, fd)

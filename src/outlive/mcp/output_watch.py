"""The watch on a task's output for subscribed clients.

A watch waits in the event loop and uses no thread.
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

# A command may write a thousand times a second. Two notifications a second are enough for a client.
_PAUSE_S = 0.5


async def watch(call: Call, task_id: str, notify: Callable[[], Awaitable[None]], ready: Callable[[], None]) -> None:
    """Call `notify` after each change of a task's output, and once at the task's end.

    `ready` is called as soon as the watch will notice every further change.
    """
    while (task := await cross(own_task, call, task_id)).current.settled_at is None:
        with OutputWatch(files_of(call.home, task)) as output:
            ready()
            while await _wait_for_growth(output):
                await notify()
                await anyio.sleep(_PAUSE_S)
        # Either the keeper has released the output but not settled the task yet, or a further attempt begins. The
        # client is notified in both cases.
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
    """Wait until one of the descriptors is readable."""
    async with anyio.create_task_group() as group:

        async def until(fd: int) -> None:
            await anyio.wait_readable(fd)
            group.cancel_scope.cancel()

        for fd in descriptors:
            group.start_soon(until, fd)

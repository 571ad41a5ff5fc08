"""The SDK for asyncio: one adapter over the synchronous one.

Short calls go to the loop's thread pool; waiting uses no thread at all, because the loop itself
can watch the FIFO that the kernel hangs up when a task ends.
"""

from __future__ import annotations

import asyncio
import os
from functools import partial

from outlive.bundle.attempt import has_writer
from outlive.client.sdk import Outlive, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_SETTLING_PAUSE = 0.02


class AsyncOutlive:
    """`Outlive` for coroutines. Options are those of the methods of the same name there."""

    def __init__(self, *, home: str | None = None, session: str | None = None) -> None:
        self._sync = Outlive(home=home, session=session)

    async def run(self, command: str | Sequence[str], **options: Any) -> Task:
        """Launch a task; returns once it runs."""
        return await asyncio.to_thread(partial(self._sync.run, command, **options))

    async def tasks(self, **options: Any) -> list[Task]:
        """The tasks of a project, newest first."""
        return await asyncio.to_thread(partial(self._sync.tasks, **options))

    async def output(self, task: Task, **options: Any) -> bytes:
        """What a task has written."""
        return await asyncio.to_thread(partial(task.output, **options))

    async def cancel(self, *tasks: Task) -> bool:
        """End the tasks with everything they started."""
        return await asyncio.to_thread(self._sync.cancel, *tasks)

    async def wait(self, task: Task, timeout: float | None = None) -> Task:  # noqa: ASYNC109 - as in the SDK
        """Until the task has ended, or the time is up: `has_ended` tells which."""
        try:
            async with asyncio.timeout(timeout):
                while not (await asyncio.to_thread(task.refresh)).has_ended:
                    await _until_let_go(task)
        except TimeoutError:
            pass
        return task


async def _until_let_go(task: Task) -> None:
    """Until nobody holds the task's done FIFO any more."""
    done = task.open_done()
    try:
        if not has_writer(done):
            await asyncio.sleep(_SETTLING_PAUSE)
            return
        loop = asyncio.get_running_loop()
        let_go = asyncio.Event()
        loop.add_reader(done, let_go.set)
        try:
            await let_go.wait()
        finally:
            loop.remove_reader(done)
    finally:
        os.close(done)

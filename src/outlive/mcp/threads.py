"""The bridge from the event loop to synchronous code, with a thread for each call."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

# Each kind of call that may take long has its own threads. So even if very many calls wait for tasks, a client can
# still launch or cancel a task. If all calls shared their threads, a launch could wait for a free thread until the
# client cuts it off.
_SHORT, _PATIENT = 16, 256
_limits: dict[str, CapacityLimiter] = {}


async def cross(call: Callable[..., T], *given: object, patient: str | None = None) -> T:
    """Return the result of a blocking call, without blocking the event loop.

    `patient` names a kind of call that may take long. If such a call is cancelled, its thread continues, and its result
    is dropped. The thread ends when the call's own time limit is over.
    """
    limiter = _limits.get(patient or "")
    if limiter is None:
        limiter = _limits[patient or ""] = CapacityLimiter(_PATIENT if patient else _SHORT)
    return await anyio.to_thread.run_sync(partial(call, *given), abandon_on_cancel=patient is not None, limiter=limiter)

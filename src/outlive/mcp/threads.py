"""The bridge from the event loop to synchronous code: a thread for each call."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

# Each kind of call that may block has its own threads. So waiting calls, however many, never keep a client from
# launching a task or from ending a task for which other calls wait. A client cuts off a call that waits too long for a
# thread.
_SHORT, _PATIENT = 16, 256
_limits: dict[str, CapacityLimiter] = {}


async def cross(call: Callable[..., T], *given: object, patient: str | None = None) -> T:
    """Return the result of a blocking call, without blocking the event loop.

    `patient` names a kind of call that may take long. If such a call is cancelled, its thread continues without a
    reader, and ends when the call's own time limit is over.
    """
    limiter = _limits.get(patient or "")
    if limiter is None:
        limiter = _limits[patient or ""] = CapacityLimiter(_PATIENT if patient else _SHORT)
    return await anyio.to_thread.run_sync(partial(call, *given), abandon_on_cancel=patient is not None, limiter=limiter)

"""The calling of blocking functions from the event loop, each in a thread."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

# Each kind of call that may take long has threads of its own. If all calls shared their threads, many waiting calls
# could occupy them all. Then a call that launches or cancels a task would wait until the client gives up.
_SHORT, _PATIENT = 16, 256
_limits: dict[str, CapacityLimiter] = {}


async def cross(call: Callable[..., T], *given: object, patient: str | None = None) -> T:
    """Run a blocking function in a thread, and return its result.

    `patient` names a kind of call that may take long. If such a call is cancelled, its thread continues until its own
    time limit, and the result is dropped.
    """
    limiter = _limits.get(patient or "")
    if limiter is None:
        limiter = _limits[patient or ""] = CapacityLimiter(_PATIENT if patient else _SHORT)
    return await anyio.to_thread.run_sync(partial(call, *given), abandon_on_cancel=patient is not None, limiter=limiter)

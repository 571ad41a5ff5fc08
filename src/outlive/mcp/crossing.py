"""The one place where the event loop meets our synchronous core: a thread for each call that blocks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

# Those who wait have threads of their own, so that any number of them leaves room for the others.
_SHORT, _PATIENT = 16, 64
_limits: dict[bool, CapacityLimiter] = {}


async def cross(call: Callable[..., T], *given: object, patiently: bool = False) -> T:
    """What a blocking call returns, without the loop waiting for it.

    A caller that has left is not waited for: its thread ends by itself, `patiently` within a slice.
    """
    limiter = _limits.get(patiently)
    if limiter is None:
        limiter = _limits[patiently] = CapacityLimiter(_PATIENT if patiently else _SHORT)
    return await anyio.to_thread.run_sync(partial(call, *given), abandon_on_cancel=patiently, limiter=limiter)

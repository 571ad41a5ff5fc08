"""The one place where the event loop meets our synchronous core: a thread for each call that blocks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

# Each kind of call that may block has threads of its own, so that any number of those who wait keeps nobody from
# launching, or from ending what they wait for. Whoever waits behind others would be cut off before it is answered.
_SHORT, _PATIENT = 16, 256
_limits: dict[str, CapacityLimiter] = {}


async def cross(call: Callable[..., T], *given: object, patient: str | None = None) -> T:
    """What a blocking call returns, without the loop waiting for it; `patient` names a kind of call that may block.

    A caller of such a one that has left is not waited for: its thread ends by itself, within a slice.
    """
    limiter = _limits.get(patient or "")
    if limiter is None:
        limiter = _limits[patient or ""] = CapacityLimiter(_PATIENT if patient else _SHORT)
    return await anyio.to_thread.run_sync(partial(call, *given), abandon_on_cancel=patient is not None, limiter=limiter)

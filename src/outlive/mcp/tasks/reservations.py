"""The reservation of a task's end for an MCP client that polls the task.

While the end is reserved, no other process reports it. The server tells a client how often to poll. If the client has
not polled for three of these intervals, its reservation expires. All reservations expire when this process exits.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from outlive.bundle.lease import Lease
from outlive.domain.errors import OutliveError
from outlive.mcp.threads import cross
from outlive.service.notices.reserve import reserve_ending

if TYPE_CHECKING:
    from outlive.bundle.home import Home

PATIENCE = 3


class Reservations:
    """The reservations of one server, by task.

    Only the event loop's thread may use this object.
    """

    def __init__(self, home: Home) -> None:
        self._home = home
        self._leases: dict[str, Lease] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._delivered: set[tuple[str, int]] = set()

    async def asked(self, task: str, interval_s: float) -> None:
        """Reserve a task's end for a client that should poll again after `interval_s`."""
        self._cancel_timer(task)
        self._timers[task] = asyncio.get_running_loop().call_later(PATIENCE * interval_s, self.drop, task)
        if task in self._leases:
            return
        self._leases[task] = lease = Lease(self._home)
        try:
            is_ours = await cross(reserve_ending, self._home, task, lease.name)
        except OutliveError:
            is_ours = False  # the ledger is locked; the client gets its reply without a reservation
        if not is_ours and self._leases.get(task) is lease:
            self.drop(task)  # another server has reserved the task's end

    def drop(self, task: str) -> None:
        """Give up the reservation of a task that the client no longer polls."""
        self._cancel_timer(task)
        lease = self._leases.pop(task, None)
        if lease is not None:
            lease.let_go()

    def deliver(self, task: str, attempt: int) -> None:
        """Record that the result of an attempt was delivered to a client."""
        self._delivered.add((task, attempt))
        self.drop(task)

    def has_delivered(self, task: str, attempt: int) -> bool:
        """Return whether this server has delivered an attempt's result to a client."""
        return (task, attempt) in self._delivered

    def _cancel_timer(self, task: str) -> None:
        timer = self._timers.pop(task, None)
        if timer is not None:
            timer.cancel()

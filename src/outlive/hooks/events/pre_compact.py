"""The event before a compaction: dead tasks are settled for a fast hand-off later."""

from __future__ import annotations

from outlive.hooks.client_process import detach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home


def prepare(home: Home) -> None:
    """Settle dead tasks in a detached process; the next start gets the hand-off."""
    detach(lambda: _settle(home))


def _settle(home: Home) -> None:
    from outlive.keeper.spawn import launch_adopter  # noqa: PLC0415 - only in the detached process
    from outlive.service.clock import utc_now  # noqa: PLC0415
    from outlive.service.maintenance.reconcile import reconcile  # noqa: PLC0415

    reconcile(home, utc_now(), None, launch_adopter)

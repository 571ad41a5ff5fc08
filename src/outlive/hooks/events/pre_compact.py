"""The handler of the event before a compaction. The handler settles dead tasks.

A dead task is a task whose keeper has exited without recording its end. Settling such tasks before the compaction makes
the hand-off after the compaction fast.
"""

from __future__ import annotations

from outlive.hooks.client_process import detach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home


def prepare(home: Home) -> None:
    """Settle tasks whose keeper has died, in a detached process.

    The hand-off itself is given when the session begins again after the compaction.
    """
    detach(lambda: _settle(home))


def _settle(home: Home) -> None:
    from outlive.keeper.spawn import launch_adopter  # noqa: PLC0415 - imported here, because only the detached process needs it
    from outlive.service.clock import utc_now  # noqa: PLC0415
    from outlive.service.maintenance.reconcile import reconcile  # noqa: PLC0415

    reconcile(home, utc_now(), None, launch_adopter)

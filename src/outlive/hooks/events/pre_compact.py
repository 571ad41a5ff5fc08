"""The handler of the event before a client summarizes the session's history.

It records the end of tasks whose keeper was killed. This makes the hand-off after the summary faster.
"""

from __future__ import annotations

from outlive.hooks.client_process import detach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home


def prepare(home: Home) -> None:
    """Record the end of tasks whose keeper was killed, in a detached process.

    The hand-off itself is given when the session begins again after the summary.
    """
    detach(lambda: _settle(home))


def _settle(home: Home) -> None:
    from outlive.keeper.spawn import launch_adopter  # noqa: PLC0415 - imported here, because only the detached process needs it
    from outlive.service.clock import utc_now  # noqa: PLC0415
    from outlive.service.maintenance.reconcile import reconcile  # noqa: PLC0415

    reconcile(home, utc_now(), None, launch_adopter)

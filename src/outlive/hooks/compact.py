"""The history is about to be summarised: what died unseen is settled now, so that the hand-off after it is quick."""

from __future__ import annotations

from outlive.hooks.process import detach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home


def prepare(home: Home) -> None:
    """Say nothing, and let nobody wait: the client begins the session anew afterwards, and asks then."""
    detach(lambda: _settle(home))


def _settle(home: Home) -> None:
    from outlive.keeper.launching import launch_adopter  # noqa: PLC0415 - only now, when nobody waits
    from outlive.service.clock import utc_now  # noqa: PLC0415
    from outlive.service.reconcile import reconcile  # noqa: PLC0415

    reconcile(home, utc_now(), None, launch_adopter)

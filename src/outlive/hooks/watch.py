"""A watcher beside a client that keeps none itself: it queues a message for the idle session, and is gone."""

from __future__ import annotations

import os

from outlive.hooks.process import detach
from outlive.ledger.opening import be_impatient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.hooks.event import Event

_PATIENCE_S = 60


def start_watcher(home: Home, event: Event, project: str) -> None:
    """Detached from the client: when that ends, so does the watcher, because it looks, and not because it is told."""
    detach(lambda: _watch(home, event, project))


def _watch(home: Home, event: Event, project: str) -> None:
    from outlive.hooks.wake import watch  # noqa: PLC0415 - only now, when nobody waits

    be_impatient(None)
    watch(home, event, project, lambda text: _queue(event, text))


def _queue(event: Event, text: str) -> None:
    """By the program that the session itself runs; whatever it refuses stays owed."""
    import subprocess  # noqa: PLC0415 - only now, when nobody waits

    client = os.readlink(f"/proc/{event.process}/exe")
    subprocess.run(
        [client, "queue", "--thread", event.session, "--message", text],
        cwd=event.cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_PATIENCE_S,
        check=True,
    )

"""A watcher beside a client that keeps none itself: it queues a message for the idle session, and is gone."""

from __future__ import annotations

import os

from outlive.hooks.process import detach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.hooks.event import Event

_PATIENCE_S = 60


def start_watcher(home: Home, event: Event, project: str) -> None:
    """Detached from the client: when that ends, so does the watcher, because it looks, and not because it is told."""
    detach(lambda: _watch(home, event, project))


def _watch(home: Home, event: Event, project: str) -> None:
    from outlive.hooks.wake import when_owed  # noqa: PLC0415 - only now, when nobody waits

    when_owed(home, event, project, lambda: _queue(event))


def _queue(event: Event) -> None:
    """By the program that the session itself runs, which keeps it also if it is killed before it gets to it.

    So the message tells nothing itself: what it is about may have been told by then, in a hand-off say.
    """
    import subprocess  # noqa: PLC0415 - only now, when nobody waits

    from outlive.hooks.poke import message  # noqa: PLC0415
    from outlive.service.telling import new_mark  # noqa: PLC0415

    client = os.readlink(f"/proc/{event.process}/exe")
    subprocess.run(
        [client, "queue", "--thread", event.session, "--message", message(new_mark())],
        cwd=event.cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_PATIENCE_S,
        check=True,
    )

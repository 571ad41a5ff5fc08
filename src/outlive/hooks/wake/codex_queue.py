"""The wake-up of an idle Codex session: a detached process queues a message."""

from __future__ import annotations

import os

from outlive.hooks.client_process import detach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.hooks.event import Event

_PATIENCE_S = 60


def start_watcher(home: Home, event: Event, project: str) -> None:
    """Start a detached process that wakes the session, and exits with the client."""
    detach(lambda: _watch(home, event, project))


def _watch(home: Home, event: Event, project: str) -> None:
    from outlive.hooks.wake.wake import when_owed  # noqa: PLC0415 - imported here, because only the detached process needs it

    when_owed(home, event, project, lambda: _queue(event))


def _queue(event: Event) -> None:
    """Send a message to the session with `codex queue`.

    The program is the same file that the session's client process runs. The message contains no notice. If Codex is
    killed, it handles the message later, when the notices may have been presented already.
    """
    import subprocess  # noqa: PLC0415 - imported here, because only the detached process needs it

    from outlive.hooks.wake.claude_message import message  # noqa: PLC0415
    from outlive.service.notices.compose import new_mark  # noqa: PLC0415

    client = os.readlink(f"/proc/{event.process}/exe")
    subprocess.run(
        [client, "queue", "--thread", event.session, "--message", message(new_mark())],
        cwd=event.cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_PATIENCE_S,
        check=True,
    )

"""A session begins or goes on: it is told what it should know before it acts."""

from __future__ import annotations

import os

from outlive.domain.session import Begun
from outlive.hooks import marks
from outlive.hooks.event import Answer
from outlive.hooks.process import mark
from outlive.service.bare_boundary import cross_bare_boundary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.hooks.event import Event, Put
    from outlive.service.hand_off import HandOff


def begin(home: Home, event: Event, project: str, put: Put) -> None:
    """Record the boundary, and put the hand-off before the model."""
    marks.forget(home, event.session)
    _offer_command(home.path)
    begun = Begun(
        id=event.session,
        project=project,
        source=event.source,
        client=event.client,
        continues=event.continues,
        process=mark(event.process),
        transcript=event.transcript,
        shares_process=event.shares_process,
    )
    if not cross_bare_boundary(home, begun):
        _hand_over(home, event, begun, put)


def _hand_over(home: Home, event: Event, begun: Begun, put: Put) -> None:
    from outlive.hooks.transcript import confirm_from_transcript  # noqa: PLC0415 - most boundaries have no need
    from outlive.keeper.launching import launch_adopter  # noqa: PLC0415
    from outlive.service.boundary import cross_boundary  # noqa: PLC0415

    if event.source != "compact":  # a summary has taken the place of what the transcript shows
        confirm_from_transcript(home, event, begun.project)

    def tell(_: object, handed: HandOff | None) -> None:
        if handed is not None and handed.text:
            put(Answer(context=handed.text))

    cross_boundary(home, begun, launch_adopter, tell)


def _offer_command(state: str) -> None:
    """Let the session's shell find `outlive`, where the client has a file for what its shell should know.

    Last in the search path, from a directory that holds nothing else: no other command changes.
    """
    file, own = os.environ.get("CLAUDE_ENV_FILE"), state + "/bin"
    if not file or not os.path.exists(own + "/outlive"):
        return
    if any(os.path.exists(place + "/outlive") for place in os.get_exec_path()):
        return
    quoted = "'" + own.replace("'", "'\\''") + "'"
    try:
        with open(file, "a", encoding="utf-8") as env:
            env.write(f'export PATH="$PATH":{quoted}\n')
    except OSError:
        pass  # it can still be called by its whole path

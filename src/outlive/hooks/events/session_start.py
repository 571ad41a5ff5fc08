"""The handler of a session's beginning, which replies with the hand-off."""

from __future__ import annotations

import os

from outlive.domain.sessions.session import SessionStart
from outlive.hooks.client_process import mark
from outlive.hooks.event import Answer
from outlive.hooks.state import session_files
from outlive.service.sessions.start_fast import cross_bare_boundary
from outlive.service.tasks.launch_context import parent_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.hooks.event import Event, Put
    from outlive.service.sessions.hand_off import HandOff


def begin(home: Home, event: Event, project: str, put: Put) -> None:
    """Record that the session begins or continues, and reply with the hand-off."""
    session_files.forget(home, event.session)
    _offer_command(home.path)
    begun = SessionStart(
        id=event.session,
        project=project,
        source=event.source,
        client=event.client,
        continues=event.continues,
        process=mark(event.process),
        transcript=event.transcript,
        parent=parent_of(os.environ),
        shares_process=event.shares_process,
    )
    if not cross_bare_boundary(home, begun):
        _hand_over(home, event, begun, put)


def _hand_over(home: Home, event: Event, begun: SessionStart, put: Put) -> None:
    from outlive.hooks.state.transcript import confirm_from_transcript  # noqa: PLC0415 - imported here, because it is rarely needed: most sessions need no hand-off
    from outlive.keeper.spawn import launch_adopter  # noqa: PLC0415
    from outlive.service.sessions.start import cross_boundary  # noqa: PLC0415

    if event.source != "compact":  # after a summary, the model may no longer know the notices in the transcript
        confirm_from_transcript(home, event, begun.project)

    def tell(_: object, handed: HandOff | None) -> None:
        if handed is not None and handed.text:
            put(Answer(context=handed.text))

    cross_boundary(home, begun, launch_adopter, tell)


def _offer_command(state: str) -> None:
    """Add the directory of `outlive` to PATH, in a file that Claude Code reads."""
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
        pass  # PATH stays as it is, and the program can still be called by its full path

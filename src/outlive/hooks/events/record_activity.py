"""The recording of what the client itself does: its edits and background commands."""

from __future__ import annotations

import os

from outlive.hooks.event import Answer
from outlive.hooks.state import session_files
from outlive.ledger.session_edits import SessionEdits
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import changed_at, utc_now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.hooks.event import Event, Put


def is_worth_noting(home: Home, event: Event) -> bool:
    """Return whether an event reports edits, or background commands of the client."""
    is_over = event.foreign_are_all and session_files.word(home, event.session, "foreign") != ""
    return bool(event.kind != "tool" and (event.edits or event.foreign or is_over))


def note(home: Home, event: Event, project: str, put: Put) -> None:
    """Record the background commands that the client runs, and its edits.

    If a sub-agent's event reports child sessions, the reply names a file. Outlive writes to this file to ask the client
    to look for its child sessions. Edits are recorded only if a task may have changed the same files since the first
    edit.
    """
    if event.foreign or event.foreign_are_all:
        from outlive.service.sessions.note_client_tasks import note_foreign  # noqa: PLC0415 - imported here, because it is rarely needed: few clients run background commands themselves

        closed = note_foreign(home, event.session, project, event.client, event.foreign, are_all=event.foreign_are_all)
        session_files.set_word(home, event.session, "foreign", "some" if event.foreign else "")
        if event.is_sub_agent and any(each.kind == "session" for each in event.foreign):
            from outlive.service.sessions.ask_client import accept_requests  # noqa: PLC0415

            put(Answer(look_file=accept_requests(home, event.session), given_up=tuple(sorted(closed))))
    if event.edits:
        first = min(changed_at(os.path.join(event.cwd, path)) for path in event.edits)
        with SqliteLedger(home.ledger, utc_now()) as ledger:
            may_matter = SessionEdits(ledger).may_matter(first)
        if may_matter:
            from outlive.service.sessions.lineage import note_edits  # noqa: PLC0415 - imported here, because it is rarely needed: usually no task runs

            note_edits(home, event.session, project, event.cwd, event.edits)

"""What a client tells in passing: files that its own tools changed, and what it runs in its own background."""

from __future__ import annotations

import os

from outlive.hooks import marks
from outlive.ledger.edits import Edits
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import changed_at, utc_now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.hooks.event import Event


def is_worth_noting(home: Home, event: Event) -> bool:
    """Whether it says anything that is not known; that a client runs nothing is news only if it ran something."""
    is_over = event.foreign_are_all and marks.word(home, event.session, "foreign") != ""
    return bool(event.kind != "tool" and (event.edits or event.foreign or is_over))


def note(home: Home, event: Event, project: str) -> None:
    """Write it down. Edits matter only if a task ran, which may change the same files, wherever it was launched."""
    if event.foreign or event.foreign_are_all:
        from outlive.service.foreign import note_foreign  # noqa: PLC0415 - few clients run anything themselves

        note_foreign(home, event.session, project, event.client, event.foreign, are_all=event.foreign_are_all)
        marks.set_word(home, event.session, "foreign", "some" if event.foreign else "")
    if event.edits:
        first = min(changed_at(os.path.join(event.cwd, path)) for path in event.edits)
        with SqliteLedger(home.ledger, utc_now()) as ledger:
            may_matter = Edits(ledger).may_matter(first)
        if may_matter:
            from outlive.service.sessions import note_edits  # noqa: PLC0415 - mostly nothing runs

            note_edits(home, event.session, project, event.cwd, event.edits)

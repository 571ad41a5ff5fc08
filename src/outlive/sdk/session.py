"""An agent session, for programs that run agents themselves.

A `Session` object returns the notices for the session, and whether the session may stop.
"""

from __future__ import annotations

import os
from typing import cast

from outlive.domain.errors import UserError
from outlive.domain.sessions.session import SOURCES, SessionStart
from outlive.service.clock import utc_now
from outlive.service.maintenance.reconcile import reconcile
from outlive.service.notices import inbox as inbox_service
from outlive.service.notices.compose import notice_documents
from outlive.service.notices.follow_inbox import follow_inbox
from outlive.service.sessions import gate as gate_service
from outlive.service.sessions import lineage
from outlive.service.sessions.hand_off import hand_off_document, nothing_handed
from outlive.service.sessions.liveness import mark_of
from outlive.service.sessions.start import cross_boundary
from outlive.service.tasks.launch_context import current_directory, parent_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from outlive.bundle.home import Home
    from outlive.domain.sessions.session import Source
    from outlive.sdk.documents import GateDocument, HandOffDocument, NoticeDocument
    from outlive.service.maintenance.reconcile import Adopter
    from outlive.service.sessions.hand_off import HandOff


class Session:
    """One agent session in one project."""

    def __init__(self, home: Home, name: str, project: str, adopter: Adopter) -> None:
        self._home = home
        self._adopter = adopter
        self.name = name
        self.project = project

    def begin(
        self,
        source: Source = "startup",
        *,
        client: str | None = None,
        continues: str | None = None,
        pid: int | None = None,
        transcript: str | None = None,
        terminal: str | None = None,
    ) -> HandOffDocument:
        """Record that the session begins or continues, and return the hand-off.

        The hand-off is a summary of background tasks, and its `text` is for the model. It is empty if the same
        beginning was recorded before. The notices in the hand-off count as presented. `pid` is the id of the client's
        process. When that process has exited, the session is over.
        """
        if source not in SOURCES:
            raise UserError(f"source cannot be {source!r}", f"give one of: {', '.join(SOURCES)}")
        begun = SessionStart(
            id=self.name,
            project=self.project,
            source=source,
            client=client,
            continues=continues,
            process=None if pid is None else mark_of(pid),
            transcript=transcript,
            terminal=terminal,
            parent=parent_of(os.environ),
        )
        found = nothing_handed()

        def put(_: object, handed: HandOff | None) -> None:
            if handed is not None:
                found.update(hand_off_document(self._home, handed))

        cross_boundary(self._home, begun, self._adopter, put)
        return cast("HandOffDocument", found)

    def end(self, reason: str | None = None) -> None:
        """End the session and its foreground tasks. The background tasks continue."""
        inbox_service.confirm_at_end(self._home, self.name, self.project)
        lineage.end(self._home, self.name, self.project, reason, self._adopter)

    def edited(self, *paths: str | os.PathLike[str]) -> None:
        """Record that the session itself has changed these files.

        If a task changes the same files at the same time, the notice about the task's end names them.
        """
        for path in paths:
            if not isinstance(path, (str, os.PathLike)):
                raise UserError(f"{path!r} is not a path", "give each path as an argument: edited('a.py', 'b.py')")
        names = [os.fsdecode(path) for path in paths]
        lineage.note_edits(self._home, self.name, self.project, current_directory(os.environ), names)

    def inbox(self, *, acknowledge: bool = False) -> list[NoticeDocument]:
        """Return the notices that the session has not received yet.

        Each notice is returned once. It counts as received after the next call of `inbox`, `gate` or `end` for this
        session. With `acknowledge`, it counts as received at once.
        """
        reconcile(self._home, utc_now(), None, self._adopter)
        with inbox_service.claim(self._home, self.name, self.project, is_turn=True) as claimed:
            found = notice_documents(self._home, claimed.tellings, claimed.owed.session if claimed.owed else None)
            if acknowledge and claimed.tellings:
                claimed.acknowledged()
            else:
                claimed.presented()
        return cast("list[NoticeDocument]", found)

    def peek(self) -> list[NoticeDocument]:
        """Return the session's pending notices, at most forty. They stay pending."""
        reconcile(self._home, utc_now(), None, self._adopter)
        seen = inbox_service.peek(self._home, self.name, self.project)
        return cast("list[NoticeDocument]", notice_documents(self._home, seen.tellings, seen.session))

    def follow(self) -> Iterator[NoticeDocument]:
        """Yield the session's notices as they come. Sleep until the next one.

        A notice counts as presented when the caller asks for the next one.
        """
        for claimed in follow_inbox(self._home, self.name, self.project, self._adopter):
            found = notice_documents(self._home, claimed.tellings, claimed.owed.session if claimed.owed else None)
            yield from cast("list[NoticeDocument]", found)
            claimed.presented()

    def acknowledge(self, *notices: str) -> list[str]:
        """Record that the session has received these notices.

        Returns the ids of the notices that had not been acknowledged or dismissed before.
        """
        return inbox_service.acknowledge(self._home, notices, self.name, self.project)

    def dismiss(self, *notices: str) -> list[str]:
        """Close notices, so that no session gets them any more.

        Returns the ids of the notices that had not been acknowledged or dismissed before.
        """
        return inbox_service.dismiss(self._home, notices, self.name, self.project)

    def gate(self, *, wait: bool = False, ceiling: float = gate_service.CEILING_S) -> GateDocument:
        """Return whether the session may stop, and the reason.

        With `wait`, wait until the session may stop or has notices to read, but for at most `ceiling` seconds.
        """
        ask = gate_service.wait_at_gate if wait else gate_service.gate
        answer = ask(self._home, self.name, self.project, self._adopter, ceiling)
        return cast("GateDocument", gate_service.gate_document(self._home, answer))

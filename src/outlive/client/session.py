"""An agent session, for programs that are clients themselves: what it is owed, and whether it may stop."""

from __future__ import annotations

import os

from outlive.domain.errors import UserError
from outlive.domain.session import SOURCES, Begun
from outlive.service import gate as gate_service
from outlive.service import inbox as inbox_service
from outlive.service import sessions as session_service
from outlive.service.boundary import cross_boundary
from outlive.service.clock import utc_now
from outlive.service.follow_inbox import follow_inbox
from outlive.service.hand_off import hand_off_document
from outlive.service.liveness import mark_of
from outlive.service.origin import current_directory
from outlive.service.reconcile import reconcile
from outlive.service.telling import notice_documents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from outlive.bundle.home import Home
    from outlive.domain.session import Source
    from outlive.service.hand_off import HandOff
    from outlive.service.reconcile import Adopter


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
    ) -> dict[str, Any]:
        """Record that it begins, or crosses a boundary; returns the hand-off, whose `text` is for the model.

        Empty if this boundary was told of already. What the hand-off tells counts as presented. `pid`
        is the client's process: when that is gone, the session is over.
        """
        if source not in SOURCES:
            raise UserError(f"source cannot be {source!r}", f"one of: {', '.join(SOURCES)}")
        begun = Begun(
            id=self.name,
            project=self.project,
            source=source,
            client=client,
            continues=continues,
            process=None if pid is None else mark_of(pid),
            transcript=transcript,
            terminal=terminal,
        )
        found: dict[str, Any] = {}

        def put(_: object, handed: HandOff | None) -> None:
            if handed is not None:
                found.update(hand_off_document(self._home, handed))

        cross_boundary(self._home, begun, self._adopter, put)
        return found

    def end(self, reason: str | None = None) -> None:
        """End it: its foreground tasks end with it, the others live on."""
        session_service.end(self._home, self.name, self.project, reason, self._adopter)

    def edited(self, *paths: str | os.PathLike[str]) -> None:
        """It has changed these files by its own hand: a task that changed them in the same time will name them."""
        session_service.note_edits(
            self._home, self.name, self.project, current_directory(os.environ), [os.fspath(path) for path in paths]
        )

    def inbox(self, *, acknowledge: bool = False) -> list[dict[str, Any]]:
        """The notices that it is owed, each once; the next call shows that they were received.

        With `acknowledge` they count as received now.
        """
        reconcile(self._home, utc_now(), None, self._adopter)
        with inbox_service.claim(self._home, self.name, self.project, is_turn=True) as claimed:
            found = notice_documents(self._home, claimed.tellings, claimed.owed.session if claimed.owed else None)
            if acknowledge and claimed.tellings:
                claimed.acknowledged()
            else:
                claimed.presented()
        return found

    def peek(self) -> list[dict[str, Any]]:
        """What it is owed; nothing counts as told."""
        reconcile(self._home, utc_now(), None, self._adopter)
        owed, tellings = inbox_service.peek(self._home, self.name, self.project)
        return notice_documents(self._home, tellings, owed.session if owed else None)

    def follow(self) -> Iterator[dict[str, Any]]:
        """Its notices as they come; blocks without cost in between. Each counts as presented once it is asked past."""
        for claimed in follow_inbox(self._home, self.name, self.project, self._adopter):
            yield from notice_documents(self._home, claimed.tellings, claimed.owed.session if claimed.owed else None)
            claimed.presented()

    def acknowledge(self, *notices: str) -> list[str]:
        """It has received these notices; returns those that were open."""
        return inbox_service.acknowledge(self._home, notices, self.name, self.project)

    def dismiss(self, *notices: str) -> list[str]:
        """Nobody needs to be told of these any more; returns those that were open."""
        return inbox_service.dismiss(self._home, notices, self.name, self.project)

    def gate(self, *, wait: bool = False, ceiling: float = gate_service.CEILING_S) -> dict[str, Any]:
        """Whether it may stop, and why not; with `wait` once it may, or after so many seconds."""
        ask = gate_service.wait_at_gate if wait else gate_service.gate
        return gate_service.gate_document(self._home, ask(self._home, self.name, self.project, self._adopter, ceiling))

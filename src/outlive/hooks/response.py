"""What one hook prints: at most one JSON document and one line about a failure."""

from __future__ import annotations

import os
import sys
from errno import EBADF

from outlive.domain.text.sanitize import one_line, to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from outlive.hooks.event import Answer, Event

WAKE_CODE = 2


class Response:
    """What a hook prints: one JSON document on stdout, and one failure on stderr."""

    def __init__(self) -> None:
        self.code = 0
        self._event: Event | None = None
        self._name = ""
        self._has_answered = False
        self._has_reported = False

    def set_event(self, event: Event, name: str) -> None:
        """Set the event that the hook replies to, and the client's name for that event."""
        self._event, self._name = event, name

    def put(self, answer: Answer) -> None:
        """Print the hook's reply for the client.

        Raises `OSError` if that fails. Then the caller must not count the notices in the reply as presented.
        """
        assert self._event is not None  # noqa: S101 - a hook replies only after it has read an event
        # If stdout or stderr was closed when this process began, its number may now belong to another open file. So do
        # not write to it.
        if (sys.__stderr__ if answer.wake else sys.__stdout__) is None:
            raise OSError(EBADF, "the output is closed, so no process reads the answer")
        if answer.wake:
            _write_all(2, answer.wake.encode("utf-8", "backslashreplace") + b"\n")
            self.code = WAKE_CODE
            return
        module: Any = __import__(f"outlive.hooks.clients.{self._event.client}", fromlist=["write"])
        if document := module.write(self._name, answer):
            self._has_answered = True
            _write_all(1, to_json(document).encode("ascii") + b"\n")

    def report_failure(self, why: str) -> None:
        """Report a failure on stderr. When a session begins, also report it to the user."""
        self.code = 0
        line = self.report(why)
        if self._event is not None and self._event.kind == "begin" and not self._has_answered:
            from outlive.hooks.event import Answer  # noqa: PLC0415 - imported here, because only a failure needs it

            try:
                self.put(Answer(note=line))
            except OSError:
                pass

    def report(self, why: str) -> str:
        """Return the line about a failure, and write it to stderr if it is the first.

        Later lines are not written, because they have the same cause. A failure to write is ignored.
        """
        line = f"outlive: {one_line(why, 400)}"
        if not self._has_reported:
            self._has_reported = True
            try:
                _write_all(2, line.encode("utf-8", "backslashreplace") + b"\n")
            except OSError:
                pass
        return line


def _write_all(fd: int, content: bytes) -> None:
    while content:
        content = content[os.write(fd, content) :]

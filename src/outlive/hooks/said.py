"""What a hook has said so far: whoever answers or complains does it here, and neither twice."""

from __future__ import annotations

import os
import sys
from errno import EBADF

from outlive.domain.text import one_line, to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from outlive.hooks.event import Answer, Event

WAKE_CODE = 2


class Said:
    """What was answered: at most one JSON document, and one line of diagnosis."""

    def __init__(self) -> None:
        self.code = 0
        self._event: Event | None = None
        self._name = ""
        self._has_answered = False
        self._has_complained = False

    def to(self, event: Event, name: str) -> None:
        """Know whom to answer, and how."""
        self._event, self._name = event, name

    def put(self, answer: Answer) -> None:
        """Write it, all of it, before anything counts as told."""
        assert self._event is not None  # noqa: S101 - whoever acts was told of an event
        # One that was closed before we began has its number taken by something else.
        if (sys.__stderr__ if answer.wake else sys.__stdout__) is None:
            raise OSError(EBADF, "nobody reads the answer")
        if answer.wake:
            _write_all(2, answer.wake.encode("utf-8", "backslashreplace") + b"\n")
            self.code = WAKE_CODE
            return
        module: Any = __import__(f"outlive.hooks.{self._event.client}", fromlist=["write"])
        if document := module.write(self._name, answer):
            self._has_answered = True
            _write_all(1, to_json(document).encode("ascii") + b"\n")

    def regret(self, why: str) -> None:
        """One line for whoever looks; at a beginning also for the person, since clients hide stderr."""
        self.code = 0
        line = self.complain(why)
        if self._event is not None and self._event.kind == "begin" and not self._has_answered:
            from outlive.hooks.event import Answer  # noqa: PLC0415 - mostly nothing goes wrong

            try:
                self.put(Answer(note=line))
            except OSError:
                pass

    def complain(self, why: str) -> str:
        """One line of diagnosis, which nobody has to be able to read; what fails after it fails for the same reason."""
        line = f"outlive: {one_line(why, 400)}"
        if not self._has_complained:
            self._has_complained = True
            try:
                _write_all(2, line.encode("utf-8", "backslashreplace") + b"\n")
            except OSError:
                pass
        return line


def _write_all(fd: int, content: bytes) -> None:
    while content:
        content = content[os.write(fd, content) :]

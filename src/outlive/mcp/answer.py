"""The result of a tool: text for the model, and the JSON that `--json` prints.

Text that comes from a task is put between two lines with a random word that the task cannot guess. So the model sees
which text is not from Outlive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mcp_types as types

from outlive.domain.notices.notice_text import frame, how_it_ended
from outlive.domain.tasks.task_json import duration_s
from outlive.domain.text.sanitize import one_line, shown, visible
from outlive.domain.text.units import show_duration, show_size
from outlive.domain.timestamps import timedelta
from outlive.domain.value import Value
from outlive.service.clock import utc_now
from outlive.service.notices.compose import new_mark
from outlive.service.tasks.read import output_view
from outlive.service.tasks.task_document import task_document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.domain.errors import OutliveError
    from outlive.domain.tasks.task import Task

_WIDTH = 100
_TAIL_LINES = 20


class Answer(Value):
    """The result of a tool, as text and as a JSON document."""

    text: str
    document: Mapping[str, Any]
    is_error: bool = False

    def result(self, *, with_document: bool) -> types.CallToolResult:
        """Return the result in the form that the MCP protocol requires.

        `with_document` decides whether it contains the JSON document, too.
        """
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=harmless(self.text))],
            structured_content=harmless(dict(self.document)) if with_document else None,
            is_error=self.is_error,
        )


def task_answer(home: Home, task: Task, text: str) -> Answer:
    """Return an answer about one task, with the JSON document of the task."""
    return Answer(text=text, document=task_document(home, task, utc_now()))


def error_answer(error: OutliveError) -> Answer:
    """Return an error as the result of a tool: first the fact, and then a hint."""
    fact, hint = (" ".join(shown(text).split("\n")) for text in (error.message, error.hint))
    return Answer(
        text=f"outlive: {fact}\nhint: {hint}",
        document={"error": {"code": error.code, "message": fact, "hint": hint}},
        is_error=True,
    )


def framed(head: str, lines: Sequence[str]) -> str:
    """Return `head`, and then lines between marks that show that a task wrote them.

    Without lines, there are no marks.
    """
    return frame(new_mark(), head, lines) if lines else head


def task_line(task: Task, now: datetime, what: str | None = None) -> str:
    """Return one line about a task. `what` replaces the task's description or command."""
    attempt, launch = task.current, task.launch
    seconds = duration_s(attempt, now)
    span = "" if seconds is None else show_duration(timedelta(seconds=seconds))
    lasted = "" if not span else f" after {span}" if attempt.settled_at is not None else f" for {span}"
    condition = f", {attempt.condition}" if attempt.condition else ""
    what = one_line(launch.description or launch.command, _WIDTH) if what is None else what
    return f"{task.id} {how_it_ended(attempt)}{lasted}{condition}: {what}"


def tail_lines(home: Home, task: Task, most: int = _TAIL_LINES) -> list[str]:
    """Return the last lines of a task's output.

    If a part of the output was dropped, the first line says how much.
    """
    output = output_view(home, task)
    lines = [f"  | {line}" for line in output.tail.splitlines()[-most:]]
    if output.dropped:
        lines.insert(0, f"  [{show_size(output.dropped)} of output were dropped from the middle]")
    return lines or ["  (no output)"]


def harmless(value: Any) -> Any:
    """Return a JSON value in which all strings are safe to show to a model.

    A client may show the JSON document to its model. So invisible characters are escaped and tags are made harmless.
    Bytes that are not UTF-8 are escaped, too, because JSON in this protocol must not contain halves of characters (lone
    surrogates).
    """
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible(str(key)): harmless(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [harmless(each) for each in value]
    return value

"""What a tool answers: text for the model, and beside it the same JSON document as `--json` prints.

Whatever a task says of itself stands inside a frame with an unguessable mark, as everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mcp_types as types

from outlive.domain.quantity import show_duration, show_size
from outlive.domain.telling import frame, how_it_ended
from outlive.domain.text import one_line, shown
from outlive.domain.value import Value
from outlive.domain.when import timedelta
from outlive.domain.wire import duration_s
from outlive.service.telling import new_mark
from outlive.service.view import output_view

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.domain.errors import OutliveError
    from outlive.domain.task import Task

_WIDTH = 100
_TAIL_LINES = 20


class Answer(Value):
    """What a tool answers."""

    text: str
    document: Mapping[str, Any]
    is_error: bool = False

    def result(self, *, with_document: bool) -> types.CallToolResult:
        """It as the protocol has it."""
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=encodable(self.text))],
            structured_content=encodable(dict(self.document)) if with_document else None,
            is_error=self.is_error,
        )


def error_answer(error: OutliveError) -> Answer:
    """An error as a model reads it: the fact, then a hint."""
    fact, hint = (" ".join(shown(text).split("\n")) for text in (error.message, error.hint))
    return Answer(
        text=f"outlive: {fact}\nhint: {hint}",
        document={"error": {"code": error.code, "message": fact, "hint": hint}},
        is_error=True,
    )


def framed(head: str, lines: Sequence[str]) -> str:
    """Lines with words of tasks in them."""
    return frame(new_mark(), head, lines) if lines else head


def task_line(task: Task, now: datetime) -> str:
    """One task in one line."""
    attempt, launch = task.current, task.launch
    seconds = duration_s(attempt, now)
    span = "" if seconds is None else show_duration(timedelta(seconds=seconds))
    lasted = "" if not span else f" after {span}" if attempt.settled_at is not None else f" for {span}"
    condition = f", {attempt.condition}" if attempt.condition else ""
    what = one_line(launch.description or launch.command, _WIDTH)
    return f"{task.id} {how_it_ended(attempt)}{lasted}{condition}: {what}"


def tail_lines(home: Home, task: Task, most: int = _TAIL_LINES) -> list[str]:
    """The last lines of its output, with what is missing before them."""
    output = output_view(home, task)
    lines = [f"  | {line}" for line in output.tail.splitlines()[-most:]]
    if output.dropped:
        lines.insert(0, f"  [{show_size(output.dropped)} of output were dropped from the middle]")
    return lines or ["  (no output)"]


def encodable(value: Any) -> Any:
    """The same value with bytes that are no text written as escapes: JSON on this wire has no lone surrogates."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {str(key): encodable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [encodable(each) for each in value]
    return value

"""Text output: tables that fit the terminal, and lines about the end of tasks.

Escape sequences in a task's texts are removed before printing.
"""

from __future__ import annotations

import os
import sys

from outlive.cli import context
from outlive.domain.tasks.task_json import duration_s
from outlive.domain.text.sanitize import one_line, to_json
from outlive.domain.text.units import show_duration, show_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from typing import TextIO

    from outlive.domain.tasks.task import Attempt, Task
    from outlive.domain.tasks.task_json import OutputView

_PLENTY, _ENOUGH = 160, 24
_COLOURS = {
    "succeeded": "32",
    "failed": "31",
    "lost": "31",
    "timed_out": "31",
    "cancelled": "33",
    "running": "36",
}


def print_json(document: object) -> None:
    """Print a document as JSON on one line.

    If records of tasks were restored, the field `restored` names these tasks. Tags that agent clients use in their
    prompts are escaped, because a model may read the output.
    """
    from outlive.domain.text.wrapper_tags import json_without_wrapper_tags

    if context.restored and isinstance(document, dict):
        document = {**document, "restored": context.restored[:]}
        context.restored.clear()
    sys.stdout.write(json_without_wrapper_tags(to_json(document)) + "\n")


def terminal_columns(stream: TextIO | None = None) -> int:
    """Return the width of the terminal in columns, or 160 if there is no terminal."""
    try:
        return os.get_terminal_size((stream or sys.stdout).fileno()).columns or _PLENTY
    except (OSError, ValueError):
        return _PLENTY


def columns_of(text: str) -> int:
    """Return how many terminal columns a text takes. An emoji takes two columns."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def cut(text: str, room: int) -> str:
    """Return a text as one line that is at most `room` columns wide.

    Escape sequences are removed, and a text that is too long is cut.
    """
    line = one_line(text, max(room, 0))
    while columns_of(line) > room and line:
        line = line[:-2] + "…" if len(line) > 1 else ""
    return line


def coloured(state: str) -> str:
    """Return the name of a task's state, colored if stdout is a terminal with colors."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return state
    return f"\x1b[{_COLOURS.get(state, '0')}m{state}\x1b[0m"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], may_go: Sequence[str] = ()) -> list[str]:
    """Return the lines of a table that fits the terminal.

    Long cells of the last column are cut. If the last column would be too narrow, the columns in `may_go` are left out,
    one after the other in this order.
    """
    wanted = list(range(len(heads)))
    widths = [max(columns_of(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
    for name in may_go:
        if _room(widths, wanted) >= _ENOUGH:
            break
        wanted.remove(heads.index(name))
    room = max(_room(widths, wanted), 1)
    lines = []
    for row in (heads, *rows):
        cells = [row[i] + " " * (widths[i] - columns_of(row[i])) for i in wanted[:-1]]
        lines.append("  ".join((*cells, cut(row[-1], room))).rstrip()[: terminal_columns()])
    return lines


def _room(widths: Sequence[int], wanted: Sequence[int]) -> int:
    """Return how many terminal columns the other columns leave for the last one."""
    return terminal_columns() - sum(widths[i] + 2 for i in wanted[:-1])


def ending(attempt: Attempt) -> str:
    """Return a phrase for how an attempt ended, such as `exit 3`.

    If the attempt has not ended, return its condition, such as `retrying`, or `-` if it has none.
    """
    if attempt.settled_at is None:
        return attempt.condition or ("retrying" if attempt.automatic and attempt.state == "queued" else "-")
    if attempt.state in ("timed_out", "lost", "cancelled") or attempt.reason:
        return attempt.reason or attempt.state
    return f"signal {attempt.signal}" if attempt.signal is not None else f"exit {attempt.exit_code}"


def lasted(attempt: Attempt, now: datetime) -> str:
    """Return how long an attempt ran, such as `2m 5s`, or `-` if it has not started."""
    from outlive.domain.timestamps import timedelta

    seconds = duration_s(attempt, now)
    return "-" if seconds is None else show_duration(timedelta(seconds=seconds))


def ago(moment: datetime | None, now: datetime) -> str:
    """Return how long ago a time was, such as `2m 5s`, or `-` for None."""
    return "-" if moment is None else show_duration(now - moment)


def ending_line(task: Task, now: datetime) -> str:
    """Return one line that says how a task ended."""
    from outlive.domain.notices.notice_text import when_it_ended

    attempt = task.current
    what = one_line(task.launch.description or task.launch.command, 70)
    how = "" if attempt.state == "succeeded" else f" ({ending(attempt)})"
    return f"{task.id} {coloured(attempt.state)}{how} {when_it_ended(attempt, now)}: {what}"


def tail_lines(output: OutputView) -> list[str]:
    """Return the last lines of a task's output.

    If a part of the output is missing, the first lines say so.
    """
    lines = []
    if output.dropped:
        lines.append(f"[{show_size(output.dropped)} of output were dropped from the middle]")
    if output.truncated:
        lines.append("[the command truncated its own output: the earlier output is lost]")
    return lines + output.tail.splitlines()

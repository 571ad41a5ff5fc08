"""What people see: tables that fit, endings in one line, nothing that could harm a terminal."""

from __future__ import annotations

import os
import sys

from outlive.domain.quantity import show_duration, show_size
from outlive.domain.text import one_line, to_json
from outlive.domain.wire import duration_s

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from typing import TextIO

    from outlive.domain.task import Attempt, Task
    from outlive.domain.wire import OutputView

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
    """One JSON document on one line."""
    sys.stdout.write(to_json(document) + "\n")


def terminal_columns(stream: TextIO | None = None) -> int:
    """Columns to use: the terminal's, or plenty where there is none."""
    try:
        return os.get_terminal_size((stream or sys.stdout).fileno()).columns or _PLENTY
    except (OSError, ValueError):
        return _PLENTY


def columns_of(text: str) -> int:
    """How many columns a text takes: letters of the Far East and emoji take two, accents none."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def cut(text: str, room: int) -> str:
    """The text as one harmless line of at most so many columns."""
    line = one_line(text, max(room, 0))
    while columns_of(line) > room and line:
        line = line[:-2] + "…" if len(line) > 1 else ""
    return line


def coloured(state: str) -> str:
    """A state in its colour, on a terminal that may have one."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return state
    return f"\x1b[{_COLOURS.get(state, '0')}m{state}\x1b[0m"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], may_go: Sequence[str] = ()) -> list[str]:
    """Lines of a table that fit the terminal.

    The last column takes what room is left and is cut; if that is too little, columns are left
    out, those of `may_go` in that order.
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
    """What is left for the last column."""
    return terminal_columns() - sum(widths[i] + 2 for i in wanted[:-1])


def ending(attempt: Attempt) -> str:
    """How it ended, or that it has not: `exit 3`, `signal 9`, `timeout`, `-`."""
    if attempt.settled_at is None:
        return attempt.condition or ("retrying" if attempt.automatic and attempt.state == "queued" else "-")
    if attempt.state in ("timed_out", "lost", "cancelled") or attempt.reason:
        return attempt.reason or attempt.state
    return f"signal {attempt.signal}" if attempt.signal is not None else f"exit {attempt.exit_code}"


def lasted(attempt: Attempt, now: datetime) -> str:
    """How long it ran, for people."""
    from outlive.domain.when import timedelta

    seconds = duration_s(attempt, now)
    return "-" if seconds is None else show_duration(timedelta(seconds=seconds))


def ago(moment: datetime | None, now: datetime) -> str:
    """How long since, for people."""
    return "-" if moment is None else show_duration(now - moment)


def ending_line(task: Task, now: datetime) -> str:
    """One task's ending in one line."""
    attempt = task.current
    what = one_line(task.launch.description or task.launch.command, 70)
    how = "" if attempt.state == "succeeded" else f" ({ending(attempt)})"
    return f"{task.id} {coloured(attempt.state)}{how} after {lasted(attempt, now)}: {what}"


def tail_lines(output: OutputView) -> list[str]:
    """The end of the output, with what is missing before it."""
    lines = []
    if output.dropped:
        lines.append(f"[{show_size(output.dropped)} of output were dropped from the middle]")
    if output.truncated:
        lines.append("[the command truncated its own output: what it wrote before is gone]")
    return lines + output.tail.splitlines()

"""`outlive effects`: print which files a task changed, and when."""

from __future__ import annotations

from outlive.cli import context
from outlive.cli.formatting import print_json
from outlive.cli.parser import Command, Given, option, whole_number
from outlive.domain.effects.describe import none_open, summary_of, window_words
from outlive.domain.effects.path_summary import fold, without_filled
from outlive.domain.text.sanitize import one_line, shown
from outlive.service.clock import utc_now
from outlive.service.effects.effects import declared_of, effects_document, effects_of, open_now, window_document
from outlive.service.tasks.output import files_of_attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from outlive.domain.effects.effects import Effects, Window
    from outlive.domain.effects.predicted import Declared, Touch

_MOST = 40


def act(given: Given) -> int:
    """Print the files and other things that one task changed."""
    home, task = context.one_task(given, "effects")
    now = utc_now()
    attempt = files_of_attempt(home, task, given.attempt).number
    found = effects_of(home, task, attempt)
    if given.open:
        windows = open_now(home, task, attempt)
        if given.json:
            print_json({"level": found.level, "windows": [window_document(each, now, None) for each in windows]})
        else:
            print("\n".join(_windows(windows, now, is_now=True)) or none_open(found))
        return 0
    declared = declared_of(task)
    if given.json:
        print_json(effects_document(found, now, whole=True, declared=declared))
    else:
        print("\n".join((*_lines(found, now), *_declared(declared))))
    return 0


def _declared(declared: Declared) -> Iterator[str]:
    if declared.touches:
        yield f"by its launch and its text ({declared.level}):"
        yield from _first([f"  {_announced(touch)} ({one_line(touch.by, 80)})" for touch in declared.touches])


def _announced(touch: Touch) -> str:
    """Return a line for one change that the task's command is expected to make."""
    what = one_line(touch.what, 120)
    return f"what {what} changes is not known" if touch.kind == "unknown" else f"{touch.kind} {what}"


def _lines(effects: Effects, now: datetime) -> Iterator[str]:
    yield f"{effects.level}: {shown(summary_of(effects, now))}"
    yield from _windows(effects.windows, now)
    for window in effects.possible[:_MOST]:
        span = f"{window.opened_at:%H:%M:%S.%f} to {window.closed_at:%H:%M:%S.%f}"
        yield f"being written, the same before and after: from {span} by {one_line(window.by, 160)}"
        yield from _paths(window.paths)
    gone = frozenset(effects.gone)
    for head, paths in (
        ("changed", [path for path in effects.changed if path not in gone]),
        ("removed", without_filled(effects.gone, effects.whole)),
        ("created", effects.created),
        ("written, same content", effects.rewritten),
        (effects.is_outside_of, effects.outside),
        ("connections, made or tried", effects.remotes),
    ):
        if paths:
            yield f"{head} ({len(paths):,}):"
            yield from _paths(paths)
    yield from _unattributed(effects)
    if effects.git:
        yield "git:"
        yield from _first([f"  {at:%H:%M:%S.%f} {what} by {one_line(by, 100)}" for at, what, by in effects.git])
    yield from _first([f"gap: {one_line(gap, 200)}" for gap in effects.gaps])
    yield from (f"not compared: {one_line(why, 200)}" for why in effects.uncompared)


def _first(lines: Sequence[str]) -> Iterator[str]:
    """Yield the first lines, and then a line with the number of the other lines."""
    yield from lines[:_MOST]
    if len(lines) > _MOST:
        yield f"  and {len(lines) - _MOST:,} more"


def _paths(paths: Sequence[str]) -> Iterator[str]:
    """Yield a line for each path, or for each directory if there are many paths."""
    for entry in fold(paths, _MOST):
        below = "" if entry.count == 1 else f"{entry.count:,} below "
        yield f"  {below}{one_line(entry.path, 200)}"


def _unattributed(effects: Effects) -> Iterator[str]:
    """Yield lines for changed files without a known cause.

    These files changed while the task ran, but no process of the task was seen to change them.
    """
    left = [each for each in effects.unattributed or () if effects.is_attributed or each.how == "touched"]
    if left:
        count = effects.unattributed_in_all if effects.is_attributed else len(left)
        yield f"changed or written by somebody else, or unseen ({count}):"
        yield from (f"  {one_line(each.path, 200)} ({each.how})" for each in left[:_MOST])


def _windows(windows: Sequence[Window], now: datetime, *, is_now: bool = False) -> Iterator[str]:
    for window in windows[:_MOST]:
        until = "" if window.closed_at is None else f" to {window.closed_at:%H:%M:%S.%f}"
        yield f"{window_words(window, now, is_now=is_now)}: from {window.opened_at:%H:%M:%S.%f}{until}"
        yield f"  opened by {one_line(window.by, 160)}"
        yield from _paths(without_filled(window.paths))
    if len(windows) > _MOST:
        yield f"and {len(windows) - _MOST:,} more windows"


COMMAND = Command(
    name="effects",
    summary="print what a task touched: windows, changes, git state, connections",
    usage="outlive effects ID",
    takes="task",
    details=(
        "A window is a time span in which a file differed from what the task found, even if the file was restored\n"
        "later. The level tells how Outlive knows the changes. `observed` means: from the task's system calls.\n"
        "`partial` means: from its system calls too, but with gaps that the output names. `watched` means: from\n"
        "reports of the file system. `compared` means: from two snapshots of the repository. With `watched` and\n"
        "`compared`, it is not known which program made a change. Datagrams that are sent without a connection are\n"
        "not observed."
    ),
    options=(
        option("--open", "print only the windows that are open now"),
        option("--attempt N", "print the effects of attempt N (default: the newest attempt)", whole_number),
    ),
    examples=(("outlive effects t7k2 --open", "print which files the task has changed and not restored yet"),),
)

"""The tool `effects`: what a task changed, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from outlive.domain.effects.describe import none_open, summary_of, window_words
from outlive.domain.text.sanitize import one_line
from outlive.mcp.answer import Answer, framed
from outlive.mcp.tools.tool import Arguments, Call, Id, Tool
from outlive.mcp.tools.visible_tasks import own_task
from outlive.service.clock import utc_now
from outlive.service.effects.effects import declared_of, effects_document, effects_of, open_now, window_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from outlive.domain.effects.effects import Effects, Window

_MOST = 20


class EffectsOf(Arguments):
    """The arguments of `effects`."""

    id: Id
    open: Annotated[bool, Field(description="return only windows that are open now")] = False


def effects(call: Call, given: EffectsOf) -> Answer:
    """Return what one task changed."""
    now, task = utc_now(), own_task(call, given.id)
    found = effects_of(call.home, task)
    if given.open:
        windows = open_now(call.home, task)
        lines = list(_windows(windows, now, is_now=True)) or [none_open(found)]
        return Answer(
            text=framed(f"What {task.id} has changed and not restored yet.", lines),
            document={"level": found.level, "windows": [window_document(window, now) for window in windows[:_MOST]]},
        )
    # The JSON document is limited, as in the tool `show`, because clients give all of it to the model.
    document = effects_document(found, now, declared=declared_of(task))
    return Answer(text=framed(f"What {task.id} touched.", _lines(found, now)), document=document)


def _lines(found: Effects, now: datetime) -> list[str]:
    lines = [f"{found.level}: {one_line(summary_of(found, now), 300)}", *_windows(found.windows, now, is_now=False)]
    for head, paths in (("changed", found.changed), ("created", found.created), ("outside", found.outside)):
        lines += [f"{head}: {one_line(path, 200)}" for path in paths[:_MOST]]
        lines += [f"{head}: and {len(paths) - _MOST} more"] if len(paths) > _MOST else []
    return [*lines, *(f"gap: {one_line(gap, 200)}" for gap in found.gaps)]


def _windows(windows: Sequence[Window], now: datetime, *, is_now: bool) -> Iterator[str]:
    for window in windows[:_MOST]:
        names = ", ".join(one_line(path, 80) for path in window.paths[:5])
        words = window_words(window, now, is_now=is_now)
        yield f"{words}, by {one_line(window.by, 80)}: {names}{', ...' if len(window.paths) > 5 else ''}"
    if len(windows) > _MOST:
        yield f"and {len(windows) - _MOST:,} more windows"


TOOL = Tool(
    name="effects",
    title="What a task touched",
    description=(
        "Return what a task changed or created, what it changed for a while and restored (a window), by which command,"
        " and how certain this is. Call this before you rely on files that a background task may have changed."
    ),
    takes=EffectsOf,
    act=effects,
)

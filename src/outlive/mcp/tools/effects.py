"""The tool `effects`: what a task touched, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from outlive.domain.effects_words import how_long, summary_of
from outlive.domain.text import one_line
from outlive.mcp.tools.scope import own_task
from outlive.mcp.tools.show import Id
from outlive.mcp.tools.tool import Arguments, Call, Tool
from outlive.mcp.words import Answer, framed
from outlive.service.clock import utc_now
from outlive.service.effects import (
    declared_document,
    declared_of,
    effects_document,
    effects_of,
    open_now,
    window_document,
)

if TYPE_CHECKING:
    from datetime import datetime

    from outlive.domain.effects import Effects, Window

_MOST = 20


class EffectsOf(Arguments):
    """What `effects` takes."""

    id: Id
    open: Annotated[bool, Field(description="only windows that are open now")] = False


def effects(call: Call, given: EffectsOf) -> Answer:
    """What one task touched."""
    now, task = utc_now(), own_task(call, given.id)
    if given.open:
        windows = open_now(call.home, task)
        return Answer(
            text=framed(f"{len(windows)} windows are open now.", [_window(window, now) for window in windows]),
            document={"windows": [window_document(window, now) for window in windows]},
        )
    found = effects_of(call.home, task)
    document = {**effects_document(found, now, whole=True), "declared": declared_document(declared_of(task))}
    return Answer(text=framed(f"What {task.id} touched.", _lines(found, now)), document=document)


def _lines(found: Effects, now: datetime) -> list[str]:
    lines = [f"{found.level}: {one_line(summary_of(found, now), 300)}", *(_window(each, now) for each in found.windows)]
    for head, paths in (("changed", found.changed), ("created", found.created), ("outside", found.outside)):
        lines += [f"{head}: {one_line(path, 200)}" for path in paths[:_MOST]]
        lines += [f"{head}: and {len(paths) - _MOST} more"] if len(paths) > _MOST else []
    return [*lines, *(f"gap: {one_line(gap, 200)}" for gap in found.gaps)]


def _window(window: Window, now: datetime) -> str:
    span = how_long(window, now)
    names = ", ".join(one_line(path, 80) for path in window.paths[:5])
    how = f"open for {span} now" if window.is_open else f"for {span}, all as before again"
    return f"window of {len(window.paths)} files, {how}, by {one_line(window.by, 80)}: {names}"


TOOL = Tool(
    name="effects",
    title="What a task touched",
    description=(
        "What a task changed, created or took away for a while (a window), by which of its commands, and how sure that"
        " is. Ask before trusting files that a background task may have moved under you."
    ),
    takes=EffectsOf,
    act=effects,
)

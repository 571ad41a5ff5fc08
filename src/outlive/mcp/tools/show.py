"""The tool `show`: all that is known about one task."""

from __future__ import annotations

from outlive.domain.effects.describe import summary_of
from outlive.domain.notices.notice_text import how_it_ended, when_it_ran
from outlive.domain.text.sanitize import one_line
from outlive.domain.timestamps import iso
from outlive.mcp.answer import Answer, framed, tail_lines, task_line
from outlive.mcp.tools.tool import Call, OneTask, Tool
from outlive.mcp.tools.visible_tasks import own_task
from outlive.service.clock import utc_now
from outlive.service.effects.effects import effects_of
from outlive.service.tasks.task_document import full_document

_WIDE = 300


def show(call: Call, given: OneTask) -> Answer:
    """Return all that is known about one task."""
    now, task = utc_now(), own_task(call, given.id)
    launch, attempt = task.launch, task.current
    effects = effects_of(call.home, task)
    lines = [
        task_line(task, now),
        f"command: {one_line(launch.command, _WIDE)}",
        f"directory: {one_line(launch.cwd, _WIDE)}",
        f"launched {iso(launch.created_at)} by {one_line(launch.session or 'no session', 60)}",
        when_it_ran(attempt),
        *(f"attempt {each.number}: {how_it_ended(each)}" for each in task.attempts[:-1]),
        *(f"left running: {left.pid} {one_line(left.command, 80)}" for left in attempt.left_running),
        f"touched ({effects.level}): {one_line(summary_of(effects, now), _WIDE)}",
        "output:",
        *tail_lines(call.home, task),
    ]
    if attempt.detail:
        lines.insert(5, f"because: {one_line(attempt.detail, _WIDE)}")
    return Answer(text=framed(f"Task {task.id}.", lines), document=full_document(call.home, task, now))


TOOL = Tool(
    name="show",
    title="Show a background task",
    description="Return everything about one task: command, directory, attempts, ending, effects, last output.",
    takes=OneTask,
    act=show,
)

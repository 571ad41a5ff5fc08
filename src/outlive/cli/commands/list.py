"""`outlive list`: print the tasks of this project."""

from __future__ import annotations

import os

from outlive.cli import context
from outlive.cli.formatting import ago, coloured, cut, ending, lasted, print_json, table, terminal_columns
from outlive.cli.parser import Command, Given, option, whole_number
from outlive.domain.errors import UserError
from outlive.domain.notices.hand_off_text import foreign_line
from outlive.domain.parse_time import moment_of
from outlive.domain.tasks.lifecycle import LIVE, STATES
from outlive.domain.tasks.lost_meaning import lost_clause
from outlive.domain.text.sanitize import one_line
from outlive.domain.text.units import parse_duration
from outlive.domain.timestamps import datetime, timedelta
from outlive.keeper.spawn import launch_adopter
from outlive.ledger.contract import Selection
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.sessions.note_client_tasks import foreign_document, foreign_now
from outlive.service.tasks.queue_reason import waiting_for
from outlive.service.tasks.read import last_line, select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive.bundle.home import Home
    from outlive.domain.sessions.client_task import ClientTask
    from outlive.domain.tasks.task import Task

_DEFAULT_LIMIT = 20
_WIDEST_PATH = 20


def act(given: Given) -> int:
    """Print the tasks that the options select, newest first."""
    home, now = context.here(), utc_now()
    limit = _DEFAULT_LIMIT if given.limit is None else given.limit
    selection = Selection(
        project=None if given.all else context.project(),
        session=given.session,
        group=given.group,
        states=tuple(given.state),
        since=now - given.since if isinstance(given.since, timedelta) else given.since,
        limit=limit + 1 if limit else None,
    )
    found = select(home, selection, launch_adopter)
    more = bool(limit) and len(found) > limit
    tasks = found[:limit] if limit else found
    if given.json:
        from outlive.service.tasks.task_document import task_document

        document = {
            "tasks": [task_document(home, task, now) for task in tasks],
            "foreign": [foreign_document(one) for one in _foreign(home, given)],
            "more": more,
        }
        if given.group is not None:
            document["remaining"] = len(select(home, selection.but(states=LIVE, limit=None), None))
        print_json(document)
        return 0
    if tasks:
        _print_table(home, tasks, now, of_all=bool(given.all))
    else:
        print(_nothing(given))
    if more:
        print(f"... and more: outlive list --limit {limit * 5}")
    if foreign := _foreign(home, given):
        print(f"commands that a client itself runs ({len(foreign)}); `outlive adopt ID` turns one into a task:")
        print("\n".join(foreign_line(one, now) for one in foreign))
    return 0


def _foreign(home: Home, given: Given) -> list[ClientTask]:
    """Return the running background commands that clients started without Outlive.

    The result is empty if an option of `list` excludes them.
    """
    if given.group or given.session or given.since or set(given.state) - {"running"}:
        return []
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        return foreign_now(ledger, None if given.all else context.project())


def _print_table(home: Home, tasks: Sequence[Task], now: datetime, *, of_all: bool) -> None:
    """Print one line for each task.

    A second line follows for some tasks: the last output of a running task, why a task was lost or waits, or the
    processes that an ended task left running.
    """
    rows = [
        (
            task.id,
            task.state,
            ending(task.current),
            lasted(task.current, now),
            ago(task.launch.created_at, now),
            _directory(task, of_all=of_all),
            _what(task),
        )
        for task in tasks
    ]
    lines = table(("ID", "STATE", "ENDING", "TOOK", "AGE", "IN", "WHAT"), rows, may_go=("TOOK", "AGE", "ENDING"))
    print(lines[0])
    for task, line in zip(tasks, lines[1:], strict=True):
        print(line.replace(task.state, coloured(task.state), 1))
        if below := _below(home, task):
            print("  > " + cut(below, terminal_columns() - 4))


def _directory(task: Task, *, of_all: bool) -> str:
    """Return the directory of a task, relative to the task's project.

    With `of_all`, the list has tasks of several projects, so the path is absolute. A long path is shortened at its
    beginning.
    """
    project, cwd = task.launch.project, task.launch.cwd
    if not of_all:
        project, cwd = "", os.path.relpath(cwd, project)
    own = os.path.expanduser("~")
    path = "~" + cwd[len(own) :] if project and f"{cwd}/".startswith(f"{own}/") else cwd
    line = one_line(path, len(path) + 1)
    return line if len(line) <= _WIDEST_PATH else "…" + line[1 - _WIDEST_PATH :]


def _what(task: Task) -> str:
    """Return a task's command, followed by its description if it has one."""
    description = task.launch.description
    return task.launch.command if description is None else f"{task.launch.command} ({description})"


def _below(home: Home, task: Task) -> str:
    if task.state == "running":
        return last_line(home, task)
    if task.state == "lost":
        return f"lost: {lost_clause(task.current)}"
    if left := task.current.left_running:
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        return f"left running: process {left[0].pid}{more}: {one_line(left[0].command, 120)}"
    waiting = waiting_for(home, task)
    return "" if waiting is None else waiting.text


def _nothing(given: Given) -> str:
    """Return the text that is printed instead of an empty list.

    The text contains the given group, because the user may have mistyped its name.
    """
    what = "no tasks" if given.group is None else f"no tasks of the group {one_line(given.group, 60)}"
    return what if given.all else f"{what} in this project (outlive list --all shows the tasks of every project)"


def _span_or_moment(text: str) -> timedelta | datetime:
    try:
        return parse_duration(text)
    except UserError:
        pass
    try:
        return moment_of(text)
    except UserError as error:
        raise UserError(error.message, f"write a time span as 90s, 15m, 2h or 7d; or {error.hint}") from None


COMMAND = Command(
    name="list",
    alias="ps",
    summary="list the tasks of this project, newest first",
    usage="outlive list [options]",
    refuses_words=True,
    options=(
        option("--all", "list the tasks of every project"),
        option("--state STATE", "list only tasks in this state", choices=STATES, repeat=True),
        option("--session ID", "list only tasks that this session launched"),
        option("--group NAME", "list only tasks of this group", takes="group"),
        option("--limit N", "list at most N tasks, or all tasks for 0 (default 20)", whole_number),
        option(
            "--since WHEN",
            "list only tasks that were launched within this time span, or after this time",
            _span_or_moment,
        ),
    ),
    examples=(("outlive list --state running", "list the tasks that run now"),),
)

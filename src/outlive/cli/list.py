"""`outlive list`: the tasks of this project."""

from __future__ import annotations

from outlive.cli import place
from outlive.cli.options import Command, Given, Option, whole_number
from outlive.cli.render import ago, coloured, cut, ending, lasted, print_json, table, terminal_columns
from outlive.domain.errors import UserError
from outlive.domain.lifecycle import LIVE, STATES
from outlive.domain.moment import moment_of
from outlive.domain.quantity import parse_duration
from outlive.domain.text import one_line
from outlive.domain.when import datetime, timedelta
from outlive.keeper.launching import launch_adopter
from outlive.ledger.contract import Selection
from outlive.service.clock import utc_now
from outlive.service.view import last_line, select, task_document

_DEFAULT_LIMIT = 20


def act(given: Given) -> int:
    """Print the selected tasks, newest first."""
    home, now = place.here(), utc_now()
    limit = _DEFAULT_LIMIT if given.limit is None else given.limit
    selection = Selection(
        project=None if given.all else place.project(),
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
        document = {"tasks": [task_document(home, task, now) for task in tasks], "more": more}
        if given.group is not None:
            document["remaining"] = len(select(home, selection.but(states=LIVE, limit=None), None))
        print_json(document)
        return 0
    if not tasks:
        print(_nothing(given))
        return 0
    rows = [
        (
            task.id,
            task.state,
            ending(task.current),
            lasted(task.current, now),
            ago(task.launch.created_at, now),
            task.launch.description or task.launch.command,
        )
        for task in tasks
    ]
    lines = table(("ID", "STATE", "ENDING", "TOOK", "AGE", "WHAT"), rows, may_go=("TOOK", "ENDING", "AGE"))
    print(lines[0])
    for task, line in zip(tasks, lines[1:], strict=True):
        print(line.replace(task.state, coloured(task.state), 1))
        if task.state == "running" and (said := last_line(home, task)):
            print("  > " + cut(said, terminal_columns() - 4))
    if more:
        print(f"... and more: outlive list --limit {limit * 5}")
    return 0


def _nothing(given: Given) -> str:
    """What an empty list says: of a group it says its name, which may be a wrong one."""
    what = "no tasks" if given.group is None else f"no tasks of the group {one_line(given.group, 60)}"
    return what if given.all else f"{what} in this project (outlive list --all shows every project's)"


def _span_or_moment(text: str) -> timedelta | datetime:
    try:
        return parse_duration(text)
    except UserError:
        return moment_of(text)


COMMAND = Command(
    name="list",
    alias="ps",
    summary="the tasks of this project, newest first",
    usage="outlive list [options]",
    options=(
        Option(name="--all", help="of every project"),
        Option(name="--state", metavar="STATE", help="only these", choices=STATES, repeat=True),
        Option(name="--session", metavar="ID", help="only those that this session launched"),
        Option(name="--group", metavar="NAME", takes="group", help="only those of this group"),
        Option(
            name="--limit",
            metavar="N",
            help="at most so many, 0 for all (default 20)",
            parse=whole_number,
        ),
        Option(
            name="--since",
            metavar="WHEN",
            help="only those launched within this span, or after this moment",
            parse=_span_or_moment,
        ),
    ),
    examples=(("outlive list --state running", "what runs now"),),
    act=act,
)

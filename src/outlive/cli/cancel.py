"""`outlive cancel`: end tasks with everything they started, and tell the truth about it."""

from __future__ import annotations

import sys

from outlive.cli import place
from outlive.cli.options import Command, Given, Option
from outlive.cli.render import ago, ending_line, print_json
from outlive.domain.errors import Conflict
from outlive.domain.lifecycle import LIVE
from outlive.keeper.launching import launch_adopter
from outlive.ledger.contract import Selection
from outlive.service.cancel import Cancelled, cancel, with_descendants
from outlive.service.clock import utc_now
from outlive.service.lookup import only_one
from outlive.service.view import find, select, select_group, task_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home


def act(given: Given) -> int:
    """Cancel, then say for each task what came of it."""
    home = place.here()
    ids = _meant(home, given)
    if given.descendants:
        ids = with_descendants(home, ids)
    outcomes = cancel(home, ids, launch_adopter)
    now = utc_now()
    if given.json:
        tasks = [{"cancelled": outcome.took, **task_document(home, outcome.task, now)} for outcome in outcomes]
        print_json({"tasks": tasks})
    else:
        for outcome in outcomes:
            print(_sentence(outcome), file=sys.stdout if outcome.took else sys.stderr)
        if not outcomes:
            print("nothing is running")
    if any(not outcome.took and not outcome.late for outcome in outcomes):
        return 5
    return 2 if any(outcome.late for outcome in outcomes) and not given.descendants else 0


def _meant(home: Home, given: Given) -> list[str]:
    if given.words:
        tasks = find(home, given.words, launch_adopter)
        for task in tasks:
            ended = task.current.settled_at
            if ended is not None and not given.descendants:
                raise Conflict(
                    f"task {task.id} is {task.state} and cannot be cancelled",
                    f"it ended {ago(ended, utc_now())} ago; `outlive show {task.id}` tells how",
                )
        return [task.id for task in tasks]
    if given.group is not None:
        # A group is of a project; a session may have worked in several.
        members = Selection(project=place.project(), session=given.session, group=given.group, states=LIVE)
        return [task.id for task in select_group(home, members, launch_adopter)]
    tasks = select(home, place.session_or_project(home, given.session).but(states=LIVE), launch_adopter)
    if given.session is not None or given.all:
        return [task.id for task in tasks]
    return [only_one(tasks, "cancel").id]


def _sentence(outcome: Cancelled) -> str:
    line = ending_line(outcome.task, utc_now())
    if outcome.took:
        return line
    if outcome.late:
        return f"too late to cancel, it had ended by itself: {line}"
    left = ", ".join(str(process.pid) for process in outcome.task.current.left_running)
    return f"not cancelled, something is still alive{f' (processes {left})' if left else ''}: {line}"


COMMAND = Command(
    name="cancel",
    summary="end tasks: interrupt, then terminate, then kill the whole tree",
    usage="outlive cancel [ID...] [options]",
    takes="task",
    details=(
        "Without ids: the only running task of this session (of this project outside of a session); if there\n"
        "are several, it asks which. Exit code 5 if something survived."
    ),
    options=(
        Option(name="--group", metavar="NAME", takes="group", help="the running tasks of this group"),
        Option(name="--session", metavar="ID", help="the running tasks of this session"),
        Option(name="--descendants", help="also the tasks that were launched from inside them"),
        Option(name="--all", help="every running task of this session or project"),
    ),
    examples=(("outlive cancel t7k2", "ends it and every process it started"),),
    act=act,
)

"""`outlive adopt`: make a task of a running process."""

from __future__ import annotations

import os

from outlive.cli import context
from outlive.cli.formatting import print_json
from outlive.cli.parser import Command, Given, Option
from outlive.domain.errors import UserError
from outlive.domain.tasks.task import NOTIFY
from outlive.keeper.spawn import launch_adopter
from outlive.service.clock import utc_now
from outlive.service.tasks.adopt import AdoptRequest, adopt, check_adopted
from outlive.service.tasks.read import find


def act(given: Given) -> int:
    """Adopt one process, and print the id of its task."""
    if len(given.words) != 1:
        raise UserError("adopt takes one process", "outlive adopt PID; outlive adopt ID of what a client runs")
    home = context.here()
    wish = AdoptRequest(
        environ=os.environ,
        description=given.description,
        session=given.session,
        group=given.group,
        notify=given.notify or "end",
    )
    task = adopt(home, given.words[0], wish, context.project(), launch_adopter)
    check_adopted(home, task)
    if given.json:
        from outlive.service.tasks.task_document import task_document

        print_json(task_document(home, find(home, [task], launch_adopter)[0], utc_now()))
    else:
        print(task)
    return 0


COMMAND = Command(
    name="adopt",
    summary="make a task of a process that somebody else started",
    usage="outlive adopt PROCESS",
    details=(
        "PROCESS is a number, or the id under which a client runs a command in its own background.\n"
        "The process goes on as it is. From now on it is a task: listed, waited for, cancelled, told of when it ends.\n"
        "Its output is copied from the file that it goes to; a pipe or a terminal cannot be read, and is named.\n"
        "Its exit code is known from Linux 6.15 on; before that, the task is `failed` with the reason `exit_unknown`,\n"
        "which says that it ended and nobody knows how. What it touches is not observed.\n"
        "Only processes of the same user; never the client itself, what started this command, or a task's process."
    ),
    options=(
        Option(name="--description", metavar="TEXT", help="what it is for, in a few words"),
        Option(name="--session", metavar="ID", help="the session that is told of its ending (default: this one)"),
        Option(
            name="--group", metavar="NAME", takes="group", help="a name to list, wait for and cancel it with others"
        ),
        Option(name="--notify", metavar="WHAT", choices=NOTIFY, help="which endings it is told (default: end)"),
    ),
    examples=(
        ("outlive adopt 4711", "prints the id of the new task"),
        ("outlive adopt bk3f9", "what Claude Code runs in its own background"),
    ),
    act=act,
)

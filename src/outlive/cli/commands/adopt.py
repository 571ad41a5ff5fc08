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
    summary="make a task of a process that Outlive did not start",
    usage="outlive adopt PROCESS",
    details=(
        "PROCESS is a process id, or the id under which a client runs a command in its own background.\n"
        "The process is not changed. From now on it is a task: you can list it, wait for it and cancel\n"
        "it, and its ending is reported.\n\n"
        "The output is copied from the file that the process writes to. A pipe or a terminal cannot be\n"
        "read, and the answer says so. What the process touches is not observed.\n\n"
        "The exit code is known from Linux 6.15 on. On older systems the task ends as `failed` with the\n"
        "reason `exit_unknown`: the process has ended, and its result is not known.\n\n"
        "Only processes of the same user can be adopted. The client, the ancestors of this command and\n"
        "the processes of tasks cannot."
    ),
    options=(
        Option(name="--description", metavar="TEXT", help="the purpose of the task, in a few words"),
        Option(name="--session", metavar="ID", help="the session that is told of the ending (default: this session)"),
        Option(
            name="--group",
            metavar="NAME",
            takes="group",
            help="the name of a group of tasks, to list, wait for and cancel together",
        ),
        Option(
            name="--notify", metavar="WHAT", choices=NOTIFY, help="which endings the session is told (default: end)"
        ),
    ),
    examples=(
        ("outlive adopt 4711", "prints the id of the new task"),
        ("outlive adopt bk3f9", "a command in the background of Claude Code"),
    ),
    act=act,
)

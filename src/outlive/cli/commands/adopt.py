"""`outlive adopt`: turn a running process into a task."""

from __future__ import annotations

import os

from outlive.cli import context
from outlive.cli.commands.run import COMMAND as RUN
from outlive.cli.formatting import print_json
from outlive.cli.parser import Command, Given, option
from outlive.domain.errors import UserError
from outlive.domain.tasks.task import NOTIFY
from outlive.keeper.spawn import launch_adopter
from outlive.service.clock import utc_now
from outlive.service.tasks.adopt import AdoptRequest, adopt, check_adopted
from outlive.service.tasks.read import find


def act(given: Given) -> int:
    """Adopt one process, and print the id of its task."""
    if len(given.words) != 1:
        raise UserError(
            "adopt takes one process",
            "outlive adopt PID, or outlive adopt ID with the id of a client's own background command",
        )
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
    summary="turn a running process into a task",
    usage="outlive adopt PROCESS",
    details=(
        "PROCESS is a process id, or the id of a command that a client runs in its own background. The process itself\n"
        "is not changed. From now on the process is a task: other commands can list it, wait for it and cancel it,\n"
        "and its ending is reported. If the process writes its output to a file, the output is copied from that file.\n"
        "Output to a pipe or a terminal cannot be read. The exit code is known on Linux 6.15 and later. On older\n"
        "kernels, the task ends as `failed` with the reason `exit_unknown`. Outlive does not observe what the process\n"
        "changes. Only processes of the same user can be adopted. The client itself, the processes that started this\n"
        "command, and processes of tasks cannot be adopted."
    ),
    options=(
        option("--description TEXT", "describe the task in a few words"),
        *(option for option in RUN.options if option.name in ("--session", "--group")),
        option("--notify WHAT", "choose which endings are reported (default: end)", choices=NOTIFY),
    ),
    examples=(
        ("outlive adopt 4711", "adopt process 4711, and print the id of the new task"),
        ("outlive adopt bk3f9", "adopt a command that Claude Code runs in its own background"),
    ),
)

"""`outlive cancel`: end tasks with every process that they started."""

from __future__ import annotations

import sys

from outlive.cli import context
from outlive.cli.formatting import ago, ending_line, print_json
from outlive.cli.parser import Command, Given, option, whole_number
from outlive.domain.errors import Conflict, UserError
from outlive.domain.tasks.lifecycle import LIVE
from outlive.keeper.spawn import launch_adopter
from outlive.ledger.contract import Selection
from outlive.service.clock import utc_now
from outlive.service.tasks.cancel import Cancelled, cancel, cancelled_json, leftovers_of, pids_of, with_descendants
from outlive.service.tasks.find import only_one
from outlive.service.tasks.read import find, select, select_group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Task


def act(given: Given) -> int:
    """Cancel tasks, and print for each task what happened to it."""
    home = context.here()
    ids = _meant(home, given)
    if given.descendants:
        ids = with_descendants(home, ids)
    outcomes = cancel(home, ids, launch_adopter)
    now = utc_now()
    if given.json:
        from outlive.service.tasks.task_document import task_document

        print_json({"tasks": [{**cancelled_json(each), **task_document(home, each.task, now)} for each in outcomes]})
    else:
        for outcome in outcomes:
            print(_sentence(outcome), file=sys.stdout if outcome.is_done else sys.stderr)
        if not outcomes:
            print("no task is running")
    if any(not outcome.is_done and not outcome.late for outcome in outcomes):
        return 5
    return 2 if any(outcome.late for outcome in outcomes) and not given.descendants else 0


def _meant(home: Home, given: Given) -> list[str]:
    if given.port is not None:
        return [_on_port(home, given).id]
    if given.words:
        tasks = find(home, given.words, launch_adopter)
        for task in tasks:
            ended = task.current.settled_at
            if ended is not None and not given.descendants and not leftovers_of(home, task):
                raise Conflict(
                    f"task {task.id} is {task.state} and cannot be cancelled",
                    f"the task ended {ago(ended, utc_now())} ago, and none of its processes runs; "
                    f"`outlive show {task.id}` tells how it ended",
                )
        return [task.id for task in tasks]
    if given.group is not None:
        # A group belongs to one project, and a session may have worked in several projects. So the group is looked up
        # in the current project.
        members = Selection(project=context.project(), session=given.session, group=given.group, states=LIVE)
        return [task.id for task in select_group(home, members, launch_adopter)]
    tasks = select(home, context.session_or_project(home, given.session).but(states=LIVE), launch_adopter)
    if given.session is not None or given.all:
        return [task.id for task in tasks]
    return [only_one(tasks, "cancel").id]


def _on_port(home: Home, given: Given) -> Task:
    """Return the task that listens on the given port, or that has leased it."""
    if given.words or given.group is not None or given.all:
        raise UserError("--port names the task already", "give either the port, or ids, --group or --all")
    from outlive.service.tasks.port_owners import owner_of_port

    select(home, Selection(states=LIVE), launch_adopter)  # an orphaned command gets a keeper, which can end it
    return owner_of_port(home, given.port, context.directory(None))


def _sentence(outcome: Cancelled) -> str:
    line = ending_line(outcome.task, utc_now())
    if outcome.took:
        return line
    if outcome.late:
        how = "its end was not observed" if outcome.task.state == "lost" else "it had ended by itself"
        return f"too late to cancel, {how}: {line}"
    if outcome.is_done:
        count = "the process" if len(outcome.ended) == 1 else f"the {len(outcome.ended)} processes"
        return f"ended {count} that the task had left running ({pids_of(outcome.ended)}): {line}"
    left = pids_of(outcome.alive)
    return f"not cancelled, a process is still alive{f' (processes {left})' if left else ''}: {line}"


COMMAND = Command(
    name="cancel",
    summary="end tasks with all their processes: interrupt, then terminate, then kill",
    usage="outlive cancel [ID...] [options]",
    takes="task",
    details=(
        "Without ids, this command ends the only running task of this session, or of this project outside of a\n"
        "session. If several tasks run, the error names them, and no task is ended. If a named task has ended, the\n"
        "command ends the processes that the task left running. The exit code is 5 if a process is still alive."
    ),
    options=(
        option("--group NAME", "end the running tasks of this group", takes="group"),
        option("--session ID", "end the running tasks of this session"),
        option(
            "--port N",
            "end the task that listens on this port, or what it left running; refuse if no task does",
            whole_number,
        ),
        option("--descendants", "also end the tasks that were launched inside these tasks"),
        option("--all", "end every running task of this session, or of this project outside of a session"),
    ),
    examples=(
        ("outlive cancel t7k2", "end the task and every process that it started"),
        ("outlive cancel --port 5173", "end the task that listens on port 5173"),
    ),
)

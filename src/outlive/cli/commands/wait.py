"""`outlive wait`: wait until tasks have ended, without polling."""

from __future__ import annotations

import resource
import sys

from outlive.cli import context
from outlive.cli.formatting import ending_line, print_json
from outlive.cli.parser import Command, Given, option
from outlive.cli.progress import Progress
from outlive.domain.tasks.lifecycle import LIVE
from outlive.domain.text.units import parse_duration
from outlive.keeper.spawn import launch_adopter
from outlive.ledger.contract import Selection
from outlive.linux.reader_gone import has_departed, reader_of_output, watch_departures
from outlive.service.clock import utc_now
from outlive.service.notices.inbox import result_was_read
from outlive.service.tasks.read import find, select, select_group
from outlive.service.tasks.wait import wait_for_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Task


_STILL_RUNNING = 4


def act(given: Given) -> int:
    """Wait for tasks, and print how they ended."""
    home = context.here()
    tasks = _meant(home, given)
    departures = watch_departures(ends=(reader_of_output(),))
    if given.until is not None:
        from outlive.cli.until import wait_until_text

        return wait_until_text(home, tasks, given, departures)
    _allow_many_files()
    with Progress(home, tasks, wanted=not given.json) as progress:
        in_time, ids = _wait_for_all(home, tasks, given, progress, departures)
    if not in_time and has_departed(departures):
        return _STILL_RUNNING
    now = utc_now()
    after = find(home, ids, launch_adopter)
    ended = [task for task in after if task.current.settled_at is not None]
    if not given.no_ack:
        for task in ended:
            result_was_read(home, task, context.session(given.session), context.project())
    if given.json:
        from outlive.service.tasks.task_document import task_document

        print_json({"tasks": [task_document(home, task, now) for task in after], "timed_out": not in_time})
    else:
        for task in ended:
            print(ending_line(task, now))
        if not ids:
            print("no task is running")
            context.note_unknown_session(home, given.session)
        if not in_time:
            left = [task.id for task in after if task.current.settled_at is None]
            print(f"still running: {', '.join(left)}", file=sys.stderr)
    if not in_time:
        return _STILL_RUNNING
    return 0 if all(task.state == "succeeded" for task in ended) else 1


def _meant(home: Home, given: Given) -> list[Task]:
    if given.words:
        return find(home, given.words, launch_adopter)
    if given.group is not None:
        # Include the tasks of the group that have ended already, because the exit code also depends on whether they
        # failed.
        members = Selection(project=context.project(), group=given.group, session=given.session)
        return select_group(home, members, launch_adopter)
    return select(home, context.session_or_project(home, given.session).but(states=LIVE), launch_adopter)


def _wait_for_all(
    home: Home, tasks: list[Task], given: Given, progress: Progress, departures: int
) -> tuple[bool, list[str]]:
    def members() -> list[Task]:
        found = _meant(home, given)
        progress.add(found)
        return found

    return wait_for_all(
        home,
        tasks,
        None if given.group is None else members,
        any_one=given.any,
        timeout=given.timeout,
        adopter=launch_adopter,
        on_end=progress.remove,
        tick=progress.tick,
        departures=departures,
    )


def _allow_many_files() -> None:
    """Raise the limit of open files, because each awaited task needs a descriptor."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            return


COMMAND = Command(
    name="wait",
    summary="wait until tasks have ended",
    usage="outlive wait [ID...] [options]",
    takes="task",
    details=(
        "Without ids, this command waits for every running task of this session. Outside of a session, it waits for\n"
        "every running task of this project. If the reader of its output is gone (a closed pipe or terminal, or a\n"
        "broken connection), the command exits with 4.\n\n"
        "With --until, the command waits for one task. port:N means that a process of this task listens on the port,\n"
        "http:URL that this process answers, file:PATH that the file exists, and cmd:CMD that the shell command\n"
        "succeeds. If the task listens on another port because its port is taken, or if it ends, the exit code is 1.\n"
        "At the timeout the task goes on, and the exit code is 4."
    ),
    options=(
        option("--any", "wait only until one of the tasks has ended"),
        option("--timeout D", "give up after this time (exit code 4)", parse_duration),
        option(
            "--until WHAT",
            "wait until a line of output matches this regular expression, or until port:N, http:URL, file:PATH, "
            "cmd:CMD or log:REGEX holds",
        ),
        option("--group NAME", "wait for all tasks of this group", takes="group"),
        option("--session ID", "wait for the running tasks of this session"),
        option("--no-ack", "do not count the endings as reported to the session"),
    ),
    examples=(
        ("outlive wait t7k2 t8m3", "wait for both tasks; the exit code is 0 if both succeeded, and 1 otherwise"),
        ("outlive wait t7k2 --until 'listening on' --timeout 30s", "wait for this line of output, for at most 30 s"),
        ("outlive wait t7k2 --until port:5173 --timeout 30s", "wait until the task listens on port 5173"),
    ),
)

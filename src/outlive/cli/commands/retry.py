"""`outlive retry`: start a new attempt of a task that has ended."""

from __future__ import annotations

import sys

from outlive.cli import context
from outlive.cli.formatting import print_json
from outlive.cli.parser import Command, Given, option
from outlive.domain.errors import OutliveError, UserError
from outlive.keeper.spawn import launch_adopter
from outlive.service.clock import utc_now
from outlive.service.maintenance.reconcile import reconcile
from outlive.service.tasks.read import find
from outlive.service.tasks.retry import lost_tasks, retry


def act(given: Given) -> int:
    """Retry one task, or with `--lost` all lost tasks that are safe to run again."""
    if given.lost or given.all:
        return _revive(given)
    home, task = context.one_task(given, "retry")
    around = context.surroundings(home, {}, foreground=task.launch.mode == "foreground")
    again = retry(home, task, around, utc_now(), session_project=context.project())
    if given.json:
        from outlive.service.tasks.task_document import task_document

        print_json(task_document(home, find(home, [again], launch_adopter)[0], utc_now()))
    else:
        print(again)
    return 0


def _revive(given: Given) -> int:
    """Retry all lost tasks that are safe to run again.

    If a task cannot be started, its error is printed, and the next task is tried.
    """
    if given.words or not given.lost:
        raise UserError("retry takes one id, or --lost", "outlive retry ID, or outlive retry --lost [--all]")
    home = context.here()
    reconcile(home, utc_now(), None, launch_adopter)
    revived, errors = [], []
    for task in lost_tasks(home, None if given.all else context.project()):
        around = context.surroundings(home, {}, foreground=task.launch.mode == "foreground")
        try:
            revived.append(retry(home, task, around, utc_now(), session_project=context.project()))
        except OutliveError as error:
            errors.append(error)
            sys.stderr.write(f"outlive: {error.message}\nhint: {error.hint}\n")
    if given.json:
        from outlive.service.tasks.task_document import task_document

        print_json({"tasks": [task_document(home, task, utc_now()) for task in find(home, revived, launch_adopter)]})
    else:
        print("\n".join(revived) or "no lost task is safe to retry automatically; `outlive retry ID` retries one")
    return errors[0].exit_code if errors else 0


COMMAND = Command(
    name="retry",
    summary="start a new attempt of a task that has ended",
    usage="outlive retry ID    or    outlive retry --lost",
    takes="task",
    details=(
        "The new attempt has the same command and directory as before, and the environment of this call. Earlier\n"
        "attempts keep their output and ending. If a session retries a task of another session, the ending of the new\n"
        "attempt is reported to the session that retries.\n"
        "\n"
        "An agent that has answered begins a new session with the same prompt. An agent that was interrupted\n"
        "continues its work. If an agent asked a question, retry is refused. Answer with\n"
        "`outlive agent --resume ID -- ANSWER`."
    ),
    options=(
        option(
            "--lost", "retry all lost tasks of this project that never began (as after a reboot) or that have --retries"
        ),
        option("--all", "with --lost: retry the lost tasks of every project"),
    ),
    examples=(
        ("outlive retry t7k2", "start a new attempt, and print the id of the task, which stays the same"),
        ("outlive retry --lost", "put tasks back into the queue that waited there before a reboot"),
    ),
)

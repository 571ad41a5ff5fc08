"""`outlive guard`: whether what somebody is about to touch is held by a task now."""

from __future__ import annotations

import os

from outlive.cli import place
from outlive.cli.options import Command, Given, Option
from outlive.cli.render import print_json
from outlive.domain.command import from_shell_text
from outlive.domain.digest import maybe_held_line
from outlive.domain.errors import UserError
from outlive.service.clock import utc_now
from outlive.service.effects import window_document
from outlive.service.guard import holders_of_command, holders_of_paths


def act(given: Given) -> int:
    """Say `clear`, or who holds it."""
    if bool(given.words) == (given.command is not None):
        raise UserError(
            "guard takes paths, or --command", "outlive guard src/a.py; outlive guard --command 'git add .'"
        )
    home, directory, now = place.here(), place.directory(given.cwd), utc_now()
    if given.command is not None:
        found = holders_of_command(home, from_shell_text(given.command).argv, directory, os.environ)
    else:
        found = holders_of_paths(home, [os.path.join(directory, word) for word in given.words], os.environ)
    if given.json:
        holders = [
            {"task": each.task, **window_document(each.window, now), "unread": list(each.unread)} for each in found
        ]
        print_json({"clear": not found, "holders": holders})
    else:
        tree = place.project(directory)
        lines = (maybe_held_line(each.task, each.window, each.unread, now, tree) for each in found)
        print("\n".join(lines) or "clear")
    return 1 if given.exit_code and found else 0


COMMAND = Command(
    name="guard",
    summary="say whether a path, or what a command is about to touch, is held by a task now",
    usage="outlive guard PATH... | outlive guard --command 'shell text'",
    details=(
        "Held is a file that a running task has changed and may put back: whoever reads or edits it now is misled,\n"
        "or in its way. A directory stands for all that is in it; git, tests and builds for the whole tree. Inside a\n"
        "task its own windows do not count. A task that ended without success is named for what it left away and\n"
        "nobody put back: for an hour, and for a day while its session has not heard of it.\n"
        "A word of the command that cannot be read (a variable, what another command prints) may mean whatever is\n"
        'held in this tree: the answer is then "cannot tell", with the task; in JSON `unread` has such words.'
    ),
    options=(
        Option(name="--command", metavar="TEXT", help="the command that is about to run"),
        Option(name="--cwd", metavar="DIR", takes="directory", help="where (default: here)"),
        Option(name="--exit-code", help="exit code 1 if something is held, or nobody can tell"),
    ),
    examples=(
        ("outlive guard --command 'git commit -am done' --exit-code", "exit code 1 while a stash is not popped"),
    ),
    act=act,
)

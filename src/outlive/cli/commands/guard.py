"""`outlive guard`: whether running or failed tasks have left paths changed."""

from __future__ import annotations

import os

from outlive.cli import context
from outlive.cli.formatting import print_json
from outlive.cli.parser import Command, Given, Option
from outlive.domain.errors import UserError
from outlive.domain.tasks.command import from_argv, from_shell_text
from outlive.service.clock import utc_now
from outlive.service.effects.guard import answer_document, answer_lines, coming_lines, guard_command, guard_paths


def act(given: Given) -> int:
    """Print `clear`, or the tasks that hold the paths in a changed state."""
    if [bool(given.words), given.command is not None, given.rest is not None].count(True) != 1 or given.rest == []:
        raise UserError("guard takes paths, or one command", "outlive guard src/a.py; outlive guard -- git add .")
    home, directory, now = context.here(), context.directory(given.cwd), utc_now()
    _check_no_command(given.words, directory)
    if given.command is not None or given.rest is not None:
        command = from_shell_text(given.command) if given.command is not None else from_argv(given.rest or [])
        found = guard_command(home, command.argv, directory, os.environ)
    else:
        found = guard_paths(home, [os.path.join(directory, word) for word in given.words], os.environ)
    if given.json:
        print_json(answer_document(found, now))
    else:
        lines = answer_lines(found, now, context.project(directory)) or ["clear"]
        print("\n".join((*lines, *coming_lines(found))))
    return 1 if given.exit_code and not found.is_clear else 0


def _check_no_command(words: list[str], directory: str) -> None:
    """Raise `UserError` for a command without `--`: its words would be taken as paths."""
    if len(words) < 2 or "/" in words[0] or os.path.lexists(os.path.join(directory, words[0])):
        return
    from shutil import which

    if which(words[0]) is not None:
        line = from_argv(words).text
        raise UserError(
            f"{words[0]!r} is a program and no file here", f"before a command put `--`: outlive guard -- {line}"
        )


COMMAND = Command(
    name="guard",
    summary="say whether a path, or what a command is about to touch, is held by a task now",
    usage="outlive guard PATH... | outlive guard -- CMD... | outlive guard --command 'shell text'",
    has_command=True,
    details=(
        "Held is a file that a running task has changed and may put back: whoever reads or edits it now is misled,\n"
        "or in its way. A directory stands for all that is in it; git, tests and builds for the whole tree. Inside a\n"
        "task its own windows do not count. A task that ended without success is named for what it left away and\n"
        "nobody put back: for an hour, and for a day while its session has not heard of it.\n"
        "A word of the command that cannot be read (a variable, what another command prints) may mean whatever is\n"
        "held in this tree; so may a program that nobody knows, and a task that runs without being observed while its\n"
        'text takes files away. The answer is then "cannot tell", with the task; in JSON `unread` and `unknown`.\n'
        "A task that waits, or runs and has taken nothing away yet, is named behind the answer if its text will."
    ),
    options=(
        Option(name="--command", metavar="TEXT", help="the command that is about to run"),
        Option(name="--cwd", metavar="DIR", takes="directory", help="where (default: here)"),
        Option(name="--exit-code", help="exit code 1 if something is held, or nobody can tell"),
    ),
    examples=(
        ("outlive guard -- git add .", "whether something in this tree is held now"),
        ("outlive guard --command 'git commit -am done' --exit-code", "exit code 1 while a stash is not popped"),
    ),
    act=act,
)

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
    summary="print whether a task holds a path, or a path that a command is about to touch",
    usage="outlive guard PATH... | outlive guard -- CMD... | outlive guard --command 'shell text'",
    has_command=True,
    details=(
        "A running task holds a file if it has changed the file and may restore it. Until then, a program\n"
        "that reads the file is misled, and an edit gets in the task's way. A directory stands for\n"
        "everything in it. git, tests and builds use the whole tree. Inside a task, its own windows do\n"
        "not count.\n\n"
        "A task that ended without success is named for the files that it left changed and that were not\n"
        "restored: for one hour, and for one day if its session has not been told of the ending.\n\n"
        'The answer is "cannot tell", with the task, in three cases: a word of the command cannot be read\n'
        "(a variable, the output of another command), the program is unknown, or a task that takes files\n"
        "away is not observed. JSON has `unread` and `unknown` for them.\n\n"
        "A task that has taken nothing away yet, but will by its text, is named after the answer."
    ),
    options=(
        Option(name="--command", metavar="TEXT", help="the command that is about to run"),
        Option(
            name="--cwd",
            metavar="DIR",
            takes="directory",
            help="the directory of the command (default: the current one)",
        ),
        Option(name="--exit-code", help="exit with 1 if a path is held, or if the guard cannot tell"),
    ),
    examples=(
        ("outlive guard -- git add .", "whether a task holds a file of this tree now"),
        ("outlive guard --command 'git commit -am done' --exit-code", "exit code 1 while a stash is not popped"),
    ),
    act=act,
)

"""`outlive guard`: print which tasks have changed paths and may restore them."""

from __future__ import annotations

import os

from outlive.cli import context
from outlive.cli.formatting import print_json
from outlive.cli.parser import Command, Given, option
from outlive.domain.errors import UserError
from outlive.domain.tasks.command import from_argv, from_shell_text
from outlive.service.clock import utc_now
from outlive.service.effects.guard import answer_document, answer_lines, coming_lines, guard_command, guard_paths


def act(given: Given) -> int:
    """Print the tasks that have changed the given paths and may restore them later.

    If there is no such task, print `clear`.
    """
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
    """Raise `UserError` if the user gave a command without `--` before it.

    Without this check, the words of the command would be taken for paths.
    """
    if len(words) < 2 or "/" in words[0] or os.path.lexists(os.path.join(directory, words[0])):
        return
    from shutil import which

    if which(words[0]) is not None:
        line = from_argv(words).text
        raise UserError(
            f"{words[0]!r} is a program, and there is no such file here",
            f"put `--` before a command: outlive guard -- {line}",
        )


COMMAND = Command(
    name="guard",
    summary="print which tasks have changed paths, or paths of a command, and may restore them",
    usage="outlive guard PATH... | outlive guard -- CMD... | outlive guard --command 'shell text'",
    has_command=True,
    details=(
        "A running task holds a file if the task has changed the file and may restore it. A reader of such a file is\n"
        "misled, and an edit of the file disturbs the task. A directory stands for all files in\n"
        "the directory. git, tests and builds use all files of the worktree. If this command runs inside a task, the\n"
        "files that this task holds do not count. A task that ended without success is named as long as a file is\n"
        "as the task left it, for at most one hour. If its ending was not reported, the limit is one day.\n"
        "A command takes files away if it changes them for a while, as `git stash` does. The answer is `cannot\n"
        "tell` (in JSON `unread` and `unknown`) if a word of the command has an unknown value, such as a variable, or\n"
        "if the program is unknown. The answer is also `cannot tell` if a running task is not observed and the task's\n"
        "command takes files away. A task whose command will take files away, but has not done so yet, is named after\n"
        "the answer."
    ),
    options=(
        option("--command TEXT", "check this command, given as one shell text"),
        option("--cwd DIR", "check for this working directory (default: the current directory)", takes="directory"),
        option("--exit-code", "exit with 1 if a task holds a file, or if that is not known"),
    ),
    examples=(
        ("outlive guard -- git add .", "print whether a task holds a file of this worktree"),
        (
            "outlive guard --command 'git commit -am done' --exit-code",
            "exit with 1 while a task has stashed files and not restored them",
        ),
    ),
)

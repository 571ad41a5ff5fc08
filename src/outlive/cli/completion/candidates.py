"""The words that a shell offers as the next word of a command line.

`answer` returns lines for the completion script of any shell. The first line is one of these:

- `candidates`: each further line is a word to offer. A tab and an explanation may follow the word.
- `directories`: the shell offers the names of directories.
- `command N`: the words from number N on are a command of its own, which the shell completes.

The shell drops the words that do not begin with what the user has typed.
"""

from __future__ import annotations

import os

from outlive.cli import context
from outlive.cli.main import ALIASES, VERBS, load
from outlive.cli.parser import HELP, JSON, Command, Option
from outlive.domain.text.sanitize import one_line, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from outlive.domain.tasks.task import Task

_NEWEST = 50  # the number of tasks that are offered; users do not read a longer list
_NEWEST_OF_GROUPS = 500  # the number of newest tasks whose groups are offered; one group may have 50 tasks
_GENERAL = ("--help\tlist the commands", "--version\tprint the version")
_HELP = "help\texplain a command, or list all commands"


def answer(words: Sequence[str]) -> list[str]:
    """Return lines with the words that may replace the last of the given words.

    The first given word is `outlive`.
    """
    verb, current = words[1], words[-1]
    if len(words) == 2:
        return ["candidates", *(_GENERAL if current.startswith("-") else (*_verbs(current), _HELP))]
    if verb == "help":
        return ["candidates", *_verbs(current)]
    return _after_verb(load(verb), words) if verb in VERBS or verb in ALIASES else ["candidates"]


def _verbs(start: str) -> Iterator[str]:
    """Yield the commands whose names begin with `start`, each with its summary."""
    for name in (*VERBS, *ALIASES):
        if name.startswith(start):
            yield f"{name}\t{load(name).summary}"


def _after_verb(command: Command, words: Sequence[str]) -> list[str]:
    """Return lines with the possible words after the name of a command."""
    options = {option.name: option for option in (*command.options, JSON, HELP)}
    *before, current = words
    option = None  # the option whose value is the word to complete
    for number, word in enumerate(before[2:], 2):
        if word == "=":
            continue  # bash splits `--name=value` into three words, so skip the `=`
        if option is not None:
            option = None
        elif word == "--":
            return [f"command {number + 1}"] if command.takes == "command" else ["candidates"]
        elif word in options and options[word].metavar:
            option = options[word]
    if option is not None:
        return _values(option)
    if "=" in (current, before[-1]):
        return ["candidates"]  # bash has split a word such as `a=b` that is not an option, so nothing can be offered
    name, equals, _ = current.partition("=")
    if equals and name in options:
        kind, *values = _values(options[name])
        return [kind, *(f"{name}={value}" for value in values)]
    return ["candidates", *_candidates(command, options.values(), is_option=current.startswith("-"))]


def _candidates(command: Command, options: Iterable[Option], *, is_option: bool) -> Iterator[str]:
    """Yield the possible words at a place that is not the value of an option."""
    if command.takes == "task" and not is_option:
        yield from tasks()
    elif isinstance(command.takes, tuple) and not is_option:
        yield from command.takes
    else:
        if command.takes == "command":
            yield "--\tput the command after this"
        for option in options:
            yield f"{option.name}\t{option.help}"


def _values(option: Option) -> list[str]:
    """Return lines with the possible values of an option."""
    if option.takes == "directory":
        return ["directories"]
    known = {"task": tasks, "group": groups}.get(option.takes or "")
    return ["candidates", *(known() if known else option.choices)]


def tasks() -> Iterator[str]:
    """Yield the ids of this project's newest tasks, each with its state and command."""
    for task in _newest(_NEWEST):
        what = one_line(task.launch.description or task.launch.command, 60)
        yield f"{task.id}\t{task.state}: {what}"


def groups() -> Iterator[str]:
    """Yield the names of groups, newest first.

    Names with tabs, line breaks or escape sequences are left out.
    """
    for name in dict.fromkeys(task.launch.group for task in _newest(_NEWEST_OF_GROUPS)):
        if name and name == plain(name) and not {"\t", "\n"} & set(name):
            yield name


def _newest(limit: int) -> Sequence[Task]:
    """Return the newest tasks of this project, as they are recorded in the ledger.

    This function changes nothing. It records no end of a task whose keeper was killed, and creates no ledger.
    """
    from outlive.bundle.home import Home, locate
    from outlive.ledger.contract import Selection
    from outlive.ledger.read_only import ReadOnlyLedger

    with ReadOnlyLedger(Home(locate(os.environ)).ledger) as ledger:
        return ledger.tasks(Selection(project=context.project(), limit=limit))

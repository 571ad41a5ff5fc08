"""The guard: whether a path, or what a command is about to touch, is as it should be now.

For whoever is about to edit a file or run a command in a tree that tasks work in. It looks, and keeps
nobody from anything.
"""

from __future__ import annotations

import os

from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.effects import open_now, open_windows
from outlive.service.holding import may_hold
from outlive.service.origin import parent_of, project_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from outlive.bundle.home import Home
    from outlive.domain.declared import Touch
    from outlive.domain.effects import Window
    from outlive.domain.task import Task

    Holder = tuple[str, Window]

# What these say is read from the whole tree, or goes into all of it.
_WHOLE_TREE = ("git", "unknown")


def holders_of_paths(home: Home, paths: Iterable[str], environ: Mapping[str, str]) -> list[Holder]:
    """Which tasks hold one of these paths away from how they found it, now; a directory stands for all in it.

    A task is not in its own way.
    """
    wanted = [os.path.realpath(path) for path in paths]
    found: dict[str, list[Holder]] = {}
    for project in sorted({project_of(path if os.path.isdir(path) else os.path.dirname(path)) for path in wanted}):
        found[project] = _open_in(home, project, environ)
    return [
        holder
        for project, holders in found.items()
        for holder in holders
        if any(_concerns(path, held) for path in wanted for held in holder[1].paths)
    ]


def holders_of_command(home: Home, argv: tuple[str, ...], directory: str, environ: Mapping[str, str]) -> list[Holder]:
    """Which tasks hold what a command is about to read or touch, as far as its text tells.

    git, and what cannot be read (tests, builds), work with the whole tree.
    """
    if not _is_anything_open(home, environ):
        return []
    from outlive.observe.declared import declare  # noqa: PLC0415 - it is dear, and paths need it not
    from outlive.observe.shell import read  # noqa: PLC0415

    touches = declare(argv, directory).touches
    reader = read(argv, directory)
    paths = [touch.what for touch in touches if touch.kind == "path" and touch.what.startswith("/")]
    paths += [
        os.path.join(each.directory or directory, word.text)
        for each in reader.commands
        for word in each.words
        if _may_name(word.text)
    ]
    if "git" in reader.programs or any(map(_is_of_tree, touches)):
        paths.append(project_of(directory))
    return holders_of_paths(home, paths, environ)


def _may_name(word: str) -> bool:
    return bool(word) and "\0" not in word and not word.startswith("-")


def _is_of_tree(touch: Touch) -> bool:
    return touch.kind in _WHOLE_TREE or (touch.kind == "path" and not touch.what.startswith("/"))


def _open_in(home: Home, project: str, environ: Mapping[str, str]) -> list[Holder]:
    return open_windows(home, _others(home, environ), project)


def _is_anything_open(home: Home, environ: Mapping[str, str]) -> bool:
    return any(open_now(home, task) for task in _others(home, environ))


def _others(home: Home, environ: Mapping[str, str]) -> list[Task]:
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        return [task for task in may_hold(ledger) if task.id != parent_of(environ)]


def _concerns(path: str, held: str) -> bool:
    """Whether the one is the other, or lies in it."""
    return path == held or held.startswith(path.rstrip("/") + "/") or path.startswith(held + "/")

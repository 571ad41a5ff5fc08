"""The guard: whether a path, or what a command is about to touch, is as it should be now.

For whoever is about to edit a file or run a command in a tree that tasks work in. It looks, and keeps
nobody from anything.
"""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase

from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.effects import open_now
from outlive.service.holding import may_hold
from outlive.service.origin import parent_of, project_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from outlive.bundle.home import Home
    from outlive.domain.declared import Touch
    from outlive.domain.effects import Window
    from outlive.observe.shell import Simple

    Holder = tuple[str, Window]

# What these say is read from the whole tree, or goes into all of it.
_WHOLE_TREE = ("git", "unknown")
# These read all that lies where they run, if they are given nothing that is there.
_SEARCHING = frozenset(
    (
        *("ls", "find", "fd", "fdfind", "tree", "du", "rg", "ag", "ack"),
        *("ruff", "mypy", "pyright", "flake8", "pylint", "eslint", "tsc", "biome"),
    )
)
_RECURSIVE = re.compile(r"-[A-Za-z]*[rR][A-Za-z]*|--(dereference-)?recursive")
# Whatever may stand there: several directories, or one of several names.
_MANY = re.compile(r"\*\*|\{[^{}\s]*(,|\.\.)[^{}\s]*\}")


def holders_of_paths(home: Home, paths: Iterable[str], environ: Mapping[str, str]) -> list[Holder]:
    """Which tasks hold one of these paths away from how they found it, now; a directory stands for all in it.

    A task is not in its own way.
    """
    return _holders(home, paths, environ, _concerns)


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
    for each in reader.commands:
        paths += _paths_of(each, each.directory or directory)
    if "git" in reader.programs or any(map(_is_of_tree, touches)):
        paths += {project_of(place) for place in (directory, *(each.directory for each in reader.commands)) if place}
    return _holders(home, paths, environ, _may_concern)


def _paths_of(command: Simple, directory: str) -> list[str]:
    """Whatever a command's words may name, and the directory that it searches without naming it."""
    from outlive.observe.shell import program_name  # noqa: PLC0415 - paths need it not

    words = [word.text for word in (*command.words, *command.reads)]
    named = [os.path.join(directory, name) for word in words for name in _names_in(word)]
    name = program_name(command)
    is_searching = name in _SEARCHING or (name.endswith("grep") and any(map(_RECURSIVE.fullmatch, words)))
    if is_searching and not any(map(os.path.lexists, named[1:])):
        named.append(directory)
    return named


def _names_in(word: str) -> Iterator[str]:
    """The word, or what an option in it is given: `--directory=x`, `-C../x`, `of=x`."""
    if "\0" in word:
        return
    value = word.partition("=")[2]
    if not word.startswith("-"):
        yield from filter(None, (word, value))
    elif word.startswith("--"):
        yield from filter(None, (value,))
    elif "/" in word or word[2:].startswith("."):
        yield word[2:]


def _is_of_tree(touch: Touch) -> bool:
    return touch.kind in _WHOLE_TREE or (touch.kind == "path" and not touch.what.startswith("/"))


def _holders(
    home: Home, paths: Iterable[str], environ: Mapping[str, str], concerns: Callable[[str, str], bool]
) -> list[Holder]:
    wanted = {place for path in paths for place in _places(path)}
    return [
        (task, window)
        for task, windows in _open_by_others(home, environ)
        for window in windows
        if any(concerns(path, held) for path in wanted for held in window.paths)
    ]


def _places(path: str) -> tuple[str, str]:
    """Where a path leads to, and where it lies itself: a link may be what was changed."""
    above, name = os.path.split(path.rstrip("/"))
    here = os.path.join(os.path.realpath(above), name) if name not in {"", ".", ".."} else os.path.realpath(path)
    return os.path.realpath(path), here


def _is_anything_open(home: Home, environ: Mapping[str, str]) -> bool:
    return any(windows for _, windows in _open_by_others(home, environ))


def _open_by_others(home: Home, environ: Mapping[str, str]) -> Iterator[tuple[str, tuple[Window, ...]]]:
    """What each task but our own holds open, wherever that is."""
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        tasks = {task.id: task for task in may_hold(ledger) if task.id != parent_of(environ)}
    return ((task.id, tuple(open_now(home, task))) for task in tasks.values())


def _concerns(path: str, held: str) -> bool:
    """Whether the one is the other, or lies in it."""
    return path == held or held.startswith(path.rstrip("/") + "/") or path.startswith(held + "/")


def _may_concern(path: str, held: str) -> bool:
    """The same of a path in which a shell may expand wildcards; a file may be called so, too."""
    if _concerns(path, held):
        return True
    many = _MANY.search(path)
    pattern = path if many is None else path[: many.start()] + "*"
    return all(map(fnmatchcase, held.split("/"), pattern.split("/")))

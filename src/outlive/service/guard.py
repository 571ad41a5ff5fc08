"""The guard: whether a path, or what a command is about to touch, is as it should be now.

For whoever is about to edit a file or run a command in a tree that tasks work in. It looks, and keeps
nobody from anything.
"""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from itertools import accumulate

from outlive.domain.git_state import is_gits_own
from outlive.domain.value import Value
from outlive.ledger.sqlite import SqliteLedger
from outlive.observe.place import place_of
from outlive.service.clock import utc_now
from outlive.service.effects import is_of_inner_worktree, open_now
from outlive.service.holding import may_hold
from outlive.service.origin import parent_of, project_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from outlive.bundle.home import Home
    from outlive.domain.declared import Touch
    from outlive.domain.effects import Window
    from outlive.observe.shell import Simple


class Holder(Value):
    """A task, and what it holds of what somebody is about to touch."""

    task: str
    window: Window
    unread: tuple[str, ...] = ()
    """What of the command cannot be read, if only that may mean what is held."""


# What these say is read from the whole tree, or goes into all of it.
_WHOLE_TREE = frozenset(("git", "unknown"))
# A file whose content is sent; with a colon behind it, it is an address.
_SENT = re.compile(r"(?:[\w.-]*@|<|fileb?://(?:localhost(?=/))?)([^:;]+)(?:;.*)?", re.DOTALL)
# Where in a word that is not literal the unknown begins.
_UNREAD = re.compile(r"[$`…]")
_MOST_UNREAD = 3
# As many as the kernel follows for one path.
_MOST_LINKS = 40
# Whatever may stand there: several directories, or one of several names.
_WILD = re.compile(r"[*?\[{]")
_MANY = re.compile(r"\*\*|\{[^{}\s]*(,|\.\.)[^{}\s]*\}")


def holders_of_paths(home: Home, paths: Iterable[str], environ: Mapping[str, str]) -> list[Holder]:
    """Which tasks hold one of these paths away from how they found it, now; a directory stands for all in it.

    A task is not in its own way.
    """
    return _holders(_open_by_others(home, environ), paths)


def holders_of_command(home: Home, argv: tuple[str, ...], directory: str, environ: Mapping[str, str]) -> list[Holder]:
    """Which tasks hold what a command is about to read or touch, as far as its text tells.

    git, programs that nobody knows (tests, builds), and those that publish or install what lies there work with the
    whole tree. A word that cannot be read may mean whatever is held where it may lead: that is told as what it is,
    neither held for sure nor clear.
    """
    held = list(_open_by_others(home, environ))
    if not any(windows for _, windows in held):
        return []
    from outlive.observe.rules import TAKES  # noqa: PLC0415 - it is dear, and paths need it not
    from outlive.observe.shell import program_name, read  # noqa: PLC0415
    from outlive.observe.touching import places_of, touches_of, tree_of  # noqa: PLC0415

    reader = read(argv, directory)
    touches: dict[Touch, None] = {}
    paths: list[str] = []
    trees: dict[str, None] = {}
    unread: dict[str, str] = {} if reader.is_whole else {"all of it": project_of(directory)}
    for each in reader.commands:
        own = list(touches_of(each, directory))
        touches |= dict.fromkeys(own)
        paths += _paths_of(each, each.directory or directory)
        unread |= _unread_in(each, directory)
        kinds = {touch.kind for touch in own} | ({"git"} if program_name(each) == "git" else set())
        is_whole = each.elsewhere is None and (bool(kinds & _WHOLE_TREE) or tree_of(each) == TAKES)
        for place in (place for place in places_of(each) if is_whole and place.startswith("/")):
            trees[project_of(place)] = None
            paths += _places(place)[1:]
            paths += _kept_by_git(each, place) if "git" in kinds else []
    paths += [touch.what for touch in touches if touch.kind == "path" and touch.what.startswith("/")]
    for touch in touches:
        is_told = any(touch.what in word for word in unread)
        if touch.kind == "path" and not touch.what.startswith(("/", "~")) and not is_told:
            unread[touch.what] = project_of(directory)
    found = _holders(held, paths, expands=True)
    for tree in trees:
        inside = [(task, [each for each in windows if not is_of_inner_worktree(each, tree)]) for task, windows in held]
        found += [each for each in _holders(inside, [tree]) if each not in found]
    known = {(each.task, each.window) for each in found}
    words = tuple(unread)[:_MOST_UNREAD]
    maybe = [each.but(unread=words) for each in _holders(held, unread.values())]
    return found + [each for each in maybe if (each.task, each.window) not in known]


def _kept_by_git(command: Simple, place: str) -> list[str]:
    """What git itself keeps that its command works with: HEAD, and the stash, which all worktrees share."""
    from outlive.observe.touching import verb_of  # noqa: PLC0415 - paths need it not

    found = place_of(place)
    if verb_of(command) != "stash":
        return [f"{found.git_directory}/HEAD"]
    return [f"{found.git_directory}/HEAD", f"{found.common_directory or found.git_directory}/refs/stash"]


def _unread_in(command: Simple, directory: str) -> dict[str, str]:
    """The words of a command that may name a file and cannot be read, each with the directory it may lead into.

    A word tells what stands before its unknown part: `src/$NAME` lies in `src`, and `$NAME` anywhere in the tree.
    """
    from outlive.observe.touching import names_no_file, words_for_files  # noqa: PLC0415 - paths need it not

    if command.elsewhere is not None:
        return {}
    place = command.directory or directory
    if place != directory and _UNREAD.search(place):
        if names_no_file(command) and not command.reads:
            return {}
        return {place: project_of(directory)}
    found = {}
    for word in (*words_for_files(command), *command.reads):
        if word.literal or word.text.startswith("/dev/") or "\0" in word.text:
            continue
        begin = _UNREAD.search(word.text)
        known = "" if begin is None else word.text[: begin.start()]
        if known.rstrip("/") == os.environ.get("TMPDIR", "/tmp").rstrip("/") and word.text[len(known)] == "…":  # noqa: S108
            continue  # a new temporary file is nobody's
        known = known.rpartition("=")[2]
        inside = os.path.join(place, os.path.dirname(known)) if known and not known.startswith("-") else ""
        found[word.text] = inside or project_of(place)
    return found


def _paths_of(command: Simple, directory: str) -> list[str]:
    """Whatever a command's words may name, and the directory that it searches without naming it."""
    from outlive.observe.rules import SEARCHES  # noqa: PLC0415 - paths need it not
    from outlive.observe.touching import files_in_text, operands_for_files, tree_of, words_for_files  # noqa: PLC0415

    words = [word.text for word in (*command.words[:1], *words_for_files(command), *command.reads)]
    named = [os.path.join(directory, name) for word in words for name in _names_in(word)]
    named += [os.path.join(directory, name) for name in files_in_text(command)]
    if tree_of(command) == SEARCHES:
        given = (word.text for word in (*operands_for_files(command), *command.reads))
        named += [] if any(_is_place(text, directory) for text in given) else [directory]
    return named


def _is_place(word: str, directory: str) -> bool:
    """Whether a word that may be a pattern or a number names where to search: it, or the directory it is in, is there.

    A wildcard, or what cannot be read, ends what is known of it.
    """
    if "\0" in word:
        return False
    known = re.split(rf"{_WILD.pattern}|{_UNREAD.pattern}", word, maxsplit=1)[0]
    parent = os.path.dirname(known)
    is_in_place = parent not in {"", "/"} and os.path.isdir(os.path.join(directory, parent))
    return is_in_place or os.path.lexists(os.path.join(directory, word))


def _names_in(word: str) -> Iterator[str]:
    """The word, or what an option in it is given: `--directory=x`, `-C../x`, `of=x`, `-v x:/in/it`, `type=a,src=x`.

    Also what a client is told to send, or to fetch from here: `-d @x`, `-F f=@x`, `f@x`, `file:///x`.
    """
    if "\0" in word:
        return
    values = [end(part, "=")[2] for part in word.split(",") if "=" in part for end in (str.partition, str.rpartition)]
    if not word.startswith("-"):
        values.append(word)
    elif not word.startswith("--") and (word[2:].startswith((".", "@")) or "/" in word):
        values.append(word[2:])
    for value in values:
        sent = _SENT.fullmatch(value)
        yield from filter(None, {value, value.partition(":")[0], sent[1] if sent else ""})


def _holders(
    held: Iterable[tuple[str, Sequence[Window]]], paths: Iterable[str], *, expands: bool = False
) -> list[Holder]:
    wanted = {place for path in paths for place in _places(path)}
    patterns = [_pattern(path) for path in wanted if _WILD.search(path)] if expands else []
    return [
        Holder(task=task, window=window)
        for task, windows in held
        for window in windows
        if _concerns(wanted, window.paths)
        or any(_may_mean(pattern, away) for pattern in patterns for away in window.paths if not is_gits_own(away))
    ]


def _places(path: str) -> tuple[str, ...]:
    """Where a path leads to, and every link on the way there: one of them may be what was changed."""
    here, names = "/", path.split("/")[::-1]
    links: list[str] = []
    while names:
        name = names.pop()
        at = os.path.join(here, name) if name not in {"", ".", ".."} else here
        target = _target(at) if at != here and len(links) < _MOST_LINKS else None
        if target is not None:
            links.append(at)
            here = "/" if target.startswith("/") else here
            names += target.split("/")[::-1]
        else:
            here = os.path.dirname(here) if name == ".." else at
    return here, *links


def _target(path: str) -> str | None:
    """What a link says, if it is one."""
    try:
        return os.readlink(path)
    except OSError:
        return None


def _open_by_others(home: Home, environ: Mapping[str, str]) -> Iterator[tuple[str, tuple[Window, ...]]]:
    """What each task but our own holds open, wherever that is."""
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        tasks = {task.id: task for task in may_hold(ledger) if task.id != parent_of(environ)}
    return ((task.id, open_now(home, task, with_stashes=True)) for task in tasks.values())


def _concerns(wanted: set[str], held: Sequence[str]) -> bool:
    """Whether one of the one is one of the other, or lies in it. Very many may be held: each is looked at once.

    Of what git keeps itself nobody reads anything by looking at the tree around it.
    """
    below = tuple(path.rstrip("/") + "/" for path in wanted)
    around = {above for path in below for above in accumulate(path.split("/")[:-1], "{}/{}".format)}
    return any(away in around or (away.startswith(below) and not is_gits_own(away)) for away in held)


def _pattern(path: str) -> list[str]:
    """A path in which a shell may expand wildcards, name by name; a file may be called so, too."""
    many = _MANY.search(path)
    return (path if many is None else path[: many.start()] + "*").split("/")


def _may_mean(pattern: list[str], held: str) -> bool:
    return all(map(fnmatchcase, held.split("/"), pattern))

"""The paths that a command is about to read or change, from its text alone."""

from __future__ import annotations

import os
import re

from outlive.observe.git.repository import find_repository
from outlive.service.effects.resolve_links import places_on_the_way
from outlive.service.effects.running_windows import WILD
from outlive.service.tasks.launch_context import project_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from outlive.domain.effects.predicted import Touch
    from outlive.observe.shell.commands import Simple

# Kinds of predicted changes. A command with such a change may read or change the whole directory tree.
_WHOLE_TREE = frozenset(("git", "unknown"))
# A word by which a program is told to send the content of a file, such as `@file`. A name that contains a colon is an
# address and not a file.
_SENT = re.compile(r"(?:[\w.-]*@|<|fileb?://(?:localhost(?=/))?)([^:;]+)(?:;.*)?", re.DOTALL)
# The characters at which the shell inserts something that the text does not show.
_UNREAD = re.compile(r"[$`…]")


class Wanted:
    """The paths and directory trees that a command is about to read or change."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.trees: dict[str, None] = {}
        self.unread: dict[str, str] = {}
        """Words that may name any file in a directory, such as `src/$NAME`.

        The value for each word is the directory, here `src`.
        """

    def places(self) -> set[str]:
        """Return the targets of the wanted paths, and the symbolic links on the way."""
        named = (*self.paths, *self.trees, *self.unread.values())
        return {place for path in named for place in places_on_the_way(path)}


def read_command(argv: tuple[str, ...], directory: str) -> Wanted:
    """Return what a command is about to read or change if it runs in `directory`."""
    from outlive.observe.predict.apply_rules import places_of, touches_of, tree_of  # noqa: PLC0415
    from outlive.observe.predict.rule import TAKES, find_program  # noqa: PLC0415 - imported here, because it is slow to import and only `guard --command` needs it
    from outlive.observe.shell.commands import program_name, read  # noqa: PLC0415

    reader = read(argv, directory)
    touches: dict[Touch, None] = {}
    wanted = Wanted()
    if not reader.is_whole:
        wanted.unread["all of it"] = project_of(directory)
    for each in reader.commands:
        own = list(touches_of(each, directory))
        touches |= dict.fromkeys(own)
        wanted.paths += _paths_of(each, each.directory or directory)
        wanted.unread |= _unread_in(each, directory)
        kinds = {touch.kind for touch in own} | ({"git"} if program_name(each) == "git" else set())
        is_whole = each.elsewhere is None and (bool(kinds & _WHOLE_TREE) or tree_of(each) == TAKES)
        for place in (place for place in places_of(each) if is_whole and place.startswith("/")):
            wanted.paths += places_on_the_way(place)[1:]
            if each.directory.startswith("/") and not os.path.isdir(each.directory):
                # The command changes to a directory that does not exist. An earlier command may create it, or `cd`
                # fails and the command runs in `directory`. The command's text does not show which.
                wanted.unread[each.directory] = project_of(directory)
            elif not os.path.isdir(place):
                wanted.paths.append(place)  # a task may have moved the directory away
            elif each.words and find_program(program_name(each)) is None:
                wanted.unread[each.words[0].text] = project_of(place)
            else:
                wanted.trees[project_of(place)] = None
                wanted.paths += _kept_by_git(each, place) if "git" in kinds else []
    wanted.paths += [touch.what for touch in touches if touch.kind == "path" and touch.what.startswith("/")]
    for touch in touches:
        is_told = any(touch.what in word for word in wanted.unread)
        if touch.kind == "path" and not touch.what.startswith(("/", "~")) and not is_told:
            wanted.unread[touch.what] = project_of(directory)
    return wanted


def _kept_by_git(command: Simple, place: str) -> list[str]:
    """Return git's own files that a command uses: HEAD, and for `git stash` the stash."""
    from outlive.observe.predict.apply_rules import verb_of  # noqa: PLC0415 - imported here, because only `guard --command` needs it

    found = find_repository(place)
    if found is None:
        return []
    _, git_dir, shared = found.roots
    stash = [f"{shared or git_dir}/refs/stash"] if verb_of(command) == "stash" else []
    return [f"{git_dir}/HEAD", *stash]


def _unread_in(command: Simple, directory: str) -> dict[str, str]:
    """Return the words of a command that may name a file but have an unknown part.

    For each word, the result has the directory in which the file may lie. For `src/$NAME`, this is `src`. For `$NAME`,
    this is the project, because the file may lie anywhere in it.
    """
    from outlive.observe.predict.apply_rules import names_no_file, words_for_files  # noqa: PLC0415 - imported here, because only `guard --command` needs it

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
            continue  # no other task uses a temporary file that the command creates
        known = known.rpartition("=")[2]
        inside = os.path.join(place, os.path.dirname(known)) if known and not known.startswith("-") else ""
        found[word.text] = inside or project_of(place)
    return found


def _paths_of(command: Simple, directory: str) -> list[str]:
    """Return the paths that the words of a command may name.

    If the command searches files and names no place to search, the paths include `directory`.
    """
    from outlive.observe.predict.apply_rules import (  # noqa: PLC0415
        files_in_text,
        names_files_for_sure,
        operands_for_files,
        tree_of,
        words_for_files,
    )
    from outlive.observe.predict.rule import SEARCHES  # noqa: PLC0415 - imported here, because only `guard --command` needs it

    # The program is a wanted file only if its name contains a slash. Otherwise the shell searches the directories in
    # PATH for the program, and not `directory`.
    program = [word for word in command.words[:1] if "/" in word.text]
    words = [word.text for word in (*program, *words_for_files(command), *command.reads)]
    named = [os.path.join(directory, name) for word in words for name in _names_in(word)]
    named += [os.path.join(directory, name) for name in files_in_text(command)]
    if tree_of(command) == SEARCHES:
        given = (word.text for word in (*operands_for_files(command), *command.reads))
        is_given = names_files_for_sure(command) or any(_is_place(text, directory) for text in given)
        named += [] if is_given else [directory]
    return named


def _is_place(word: str, directory: str) -> bool:
    """Return whether a word names a place to search, and not a pattern or a number."""
    if "\0" in word:
        return False
    known = re.split(rf"{WILD.pattern}|{_UNREAD.pattern}", word, maxsplit=1)[0]
    parent = os.path.dirname(known)
    is_in_place = parent not in {"", "/"} and os.path.isdir(os.path.join(directory, parent))
    return is_in_place or os.path.lexists(os.path.join(directory, word))


def _names_in(word: str) -> Iterator[str]:
    """Yield the values in a word that may be file names.

    They include values of options (`-C../x`, `of=x`, `type=a,src=x`) and files of curl (`-d @x`, `file:///x`).
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

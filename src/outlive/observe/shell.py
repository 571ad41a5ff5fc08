"""A command as the simple commands it consists of, however deep they are wrapped.

`read` is the entry. A text goes to the grammar (`grammar.py`) or, without one, to `glimpse.py`; each
simple command comes back here, and if it runs other commands (`unwrap.py`) those are read in turn.
Every kind of nesting ends at a limit, and whatever was left out makes the reading not whole.
"""

from __future__ import annotations

import os
import posixpath
from functools import cache

from outlive.domain.command import quote
from outlive.domain.text import is_encodable
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from outlive.domain.declared import TouchKind

# The kernel takes no longer argument, so a longer text is no command; and time grows with the text.
LONGEST_TEXT = 128 * 1024
# The grammar's time grows with the square of the here-documents in one text.
MOST_HEREDOCS = 200
MOST_TEXTS = 500
MOST_COMMANDS = 2_000
MOST_STEPS = 40_000
DEEPEST = 60
_LONGEST_LINE = 200
_UNKNOWN = frozenset("$`()…{}")
# Where git works if they are set, whatever its directory is.
PLACES_OF_GIT = ("GIT_DIR", "GIT_WORK_TREE")
# What it runs if they are set, or where it is told so.
PROGRAMS_OF_GIT = (
    *("GIT_PAGER", "PAGER", "GIT_EDITOR", "EDITOR", "VISUAL", "GIT_SEQUENCE_EDITOR", "GIT_EXTERNAL_DIFF"),
    *("GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_PROXY_COMMAND", "GIT_EXEC_PATH"),
    *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_COUNT"),
)
VARIABLES_OF_GIT = PLACES_OF_GIT + PROGRAMS_OF_GIT


class Word(Value):
    """One word of a command; if not literal, its text is what was written and not what it will be."""

    text: str
    literal: bool = True


_TEMPORARY = Word(text="/tmp")  # noqa: S108 - named, not used
ANY_WORD = Word(text="…", literal=False)


class Elsewhere(Value):
    """Where a command runs that does not run here."""

    kind: TouchKind
    name: str


class Simple(Value):
    """One program and its words, or only redirections if it has none."""

    words: tuple[Word, ...]
    directory: str
    line: str
    writes: tuple[Word, ...] = ()
    """What its redirections open for writing."""
    reads: tuple[Word, ...] = ()
    """What they open for reading."""
    stdin: str | None = None
    """What the text itself feeds it, where that is literal."""
    is_fed: bool = False
    """Whether its input is a file, a pipe or a here-document."""
    sets: tuple[tuple[str, Word], ...] = ()
    """What the text sets for it, of the variables that git goes by."""
    elsewhere: Elsewhere | None = None


class Scope:
    """What a shell knows at one point of its text: where it is, its variables, its functions."""

    def __init__(self, directory: str, elsewhere: Elsewhere | None = None) -> None:
        self.directory = directory
        self.elsewhere = elsewhere
        self.before = directory
        self.variables: dict[str, Word] = {}
        self.functions: dict[str, object] = {}
        if elsewhere is None:
            for name, default in (("HOME", ""), ("TMPDIR", _TEMPORARY.text)):
                if value := os.environ.get(name, default):
                    self.variables[name] = Word(text=value)

    @property
    def temporary(self) -> str:
        """Where temporary files go."""
        return self.variables.get("TMPDIR", _TEMPORARY).text

    def copy(self) -> Scope:
        """The scope of a subshell: what happens there stays there."""
        other = Scope.__new__(Scope)
        other.directory, other.before, other.elsewhere = self.directory, self.before, self.elsewhere
        other.variables, other.functions = dict(self.variables), dict(self.functions)
        return other

    def enter(self, words: tuple[Word, ...]) -> None:
        """Follow a `cd` or `pushd`; `popd` and `cd -` lead back."""
        targets = [word for word in words[1:] if word.text == "-" or not word.text.startswith("-")]
        if words[0].text == "popd" or (targets and targets[0].text == "-"):
            target = self.before
        else:
            target = targets[0].text if targets else self.variables.get("HOME", Word(text="~")).text
        self.before, self.directory = self.directory, join(self.directory, target)


class Reader:
    """One reading: what was found so far, and how much more may be looked at."""

    def __init__(self) -> None:
        self.commands: list[Simple] = []
        self.programs: set[str] = set()
        self.is_whole = True
        self._texts = MOST_TEXTS
        self._steps = MOST_STEPS

    def may_go_on(self, depth: int) -> bool:
        """Count one step; False, and the reading is not whole, if that was one too many or too deep."""
        self._steps -= 1
        if self._steps < 0 or depth > DEEPEST or len(self.commands) >= MOST_COMMANDS:
            self.is_whole = False
            return False
        return True

    def read_text(self, text: str, scope: Scope, depth: int, given: Simple) -> None:
        """Read a shell text in a scope, which it may change; its input is that of the command which is given it."""
        self._texts -= 1
        if self._texts < 0 or not self.may_go_on(depth):
            self.is_whole = False
            return
        if len(text) > LONGEST_TEXT or "\0" in text or not is_encodable(text):
            self.is_whole = False
            text = text[:LONGEST_TEXT].replace("\0", " ")
        parse = _grammar() if text.count("<<") <= MOST_HEREDOCS else None
        unread = scope.copy()
        if parse is None or not parse(self, text, scope, depth, given):
            from outlive.observe.glimpse import glimpse  # noqa: PLC0415 - seldom needed

            self.is_whole = False
            glimpse(self, text, unread, depth)

    def add(self, command: Simple, scope: Scope, depth: int) -> None:
        """Take in a simple command, or what it runs."""
        from outlive.observe.unwrap import unwrap  # noqa: PLC0415 - they call each other

        if not self.may_go_on(depth):
            return
        if name := program_name(command):
            self.programs.add(name)
            if name in {"cd", "pushd", "popd"}:
                scope.enter(command.words)
        if not unwrap(self, command, scope, depth):
            self.commands.append(command)


def read(argv: Iterable[str], cwd: str) -> Reader:
    """Everything that running `argv` in `cwd` would run, as far as the words tell."""
    words = tuple(Word(text=word) for word in argv)
    reader = Reader()
    line = one_line(" ".join(quote(word.text[: 2 * _LONGEST_LINE]) for word in words[:_LONGEST_LINE]))
    reader.add(Simple(words=words, directory=cwd, line=line), Scope(cwd), 0)
    return reader


def program_name(command: Simple) -> str:
    """The name of the program without the directory it lies in; empty if the text does not tell it.

    Only a directory of programs makes a name mean what it usually does: `./test` and `bin/test` are
    somebody's own, and keep their paths.
    """
    if not command.words:
        return ""
    word = command.words[0]
    directory, slash, name = word.text.rpartition("/")
    if not word.literal and _UNKNOWN.intersection(name):
        return ""
    is_usual = not slash or directory.endswith(("/bin", "/sbin", "/.bin", "/libexec")) or name == "manage.py"
    return name if is_usual and directory != "./bin" else word.text


def one_line(text: str) -> str:
    """A command as one line of bounded length."""
    flat = " ".join(text[: 4 * _LONGEST_LINE].split())
    return flat if len(flat) <= _LONGEST_LINE else flat[: _LONGEST_LINE - 1] + "…"


def join(directory: str, path: str) -> str:
    """The path as seen from a directory; one that begins with a variable stands for itself."""
    if path.startswith(("$", "`", "~", "…")):
        return path
    return posixpath.normpath(posixpath.join(directory, path))


@cache
def _grammar() -> Callable[[Reader, str, Scope, int, Simple], bool] | None:
    """The grammar's way of reading a text, if it is installed."""
    try:
        from outlive.observe.grammar import parse  # noqa: PLC0415 - optional, and heavy
    except ImportError:
        return None
    return parse

"""A reader that finds the simple commands which a command would run.

A simple command is one program with its arguments. The grammar (`bash_grammar.py`) reads the text of a command. If the
grammar cannot read a text, `split_text.py` splits the text. Both modules pass each simple command to `Reader.add`. This
method also reads the commands that the simple command runs (`wrappers.py`). If a limit is exceeded, commands may be
missing and `Reader.is_whole` is False.
"""

from __future__ import annotations

import os
import posixpath
from functools import cache

from outlive.domain.tasks.command import quote
from outlive.domain.text.sanitize import is_encodable
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from outlive.domain.effects.predicted import TouchKind

# The kernel accepts no argument above this length, so a longer text cannot be run. The limit also bounds the time
# for reading, which grows with the length of the text.
LONGEST_TEXT = 128 * 1024
# The grammar's time grows with the square of the number of here-documents in one text.
MOST_HEREDOCS = 200
MOST_TEXTS = 500
MOST_COMMANDS = 2_000
MOST_STEPS = 40_000
DEEPEST = 60
_LONGEST_LINE = 200
_UNKNOWN = frozenset("$`()…{}")
# Variables that tell git where to work, whatever its current directory is.
PLACES_OF_GIT = ("GIT_DIR", "GIT_WORK_TREE")
# Variables that name programs for git to run, or that name configuration with such programs.
PROGRAMS_OF_GIT = (
    *("GIT_PAGER", "PAGER", "GIT_EDITOR", "EDITOR", "VISUAL", "GIT_SEQUENCE_EDITOR", "GIT_EXTERNAL_DIFF"),
    *("GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_PROXY_COMMAND", "GIT_EXEC_PATH"),
    *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_COUNT"),
)
VARIABLES_OF_GIT = PLACES_OF_GIT + PROGRAMS_OF_GIT


class Word(Value):
    """One word of a command.

    If a shell would change the word, for example by a variable, `text` is its source text.
    """

    text: str
    literal: bool = True


_TEMPORARY = Word(text="/tmp")  # noqa: S108 - the default value of TMPDIR, and no file is created
ANY_WORD = Word(text="…", literal=False)


class Elsewhere(Value):
    """A place other than this machine's shell in which a command runs.

    This is for example a container or another machine.
    """

    kind: TouchKind
    name: str


class Simple(Value):
    """One program and its words, or redirections without a program."""

    words: tuple[Word, ...]
    directory: str
    line: str
    writes: tuple[Word, ...] = ()
    """The files that the redirections of the command open for writing."""
    reads: tuple[Word, ...] = ()
    """The files that the redirections of the command open for reading."""
    stdin: str | None = None
    """The content of the command's input, if the command text contains it literally."""
    is_fed: bool = False
    """Whether the command's input is a file, a pipe or a here-document."""
    sets: tuple[tuple[str, Word], ...] = ()
    """The variables of git that the text sets for this command."""
    elsewhere: Elsewhere | None = None


class Scope:
    """What a shell knows at one point of a text: directory, variables and functions."""

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
        """The directory of temporary files."""
        return self.variables.get("TMPDIR", _TEMPORARY).text

    def copy(self) -> Scope:
        """Return a copy for a subshell, whose changes do not affect the original."""
        other = Scope.__new__(Scope)
        other.directory, other.before, other.elsewhere = self.directory, self.before, self.elsewhere
        other.variables, other.functions = dict(self.variables), dict(self.functions)
        return other

    def enter(self, words: tuple[Word, ...]) -> None:
        """Follow a `cd`, `pushd` or `popd` to its directory."""
        targets = [word for word in words[1:] if word.text == "-" or not word.text.startswith("-")]
        if words[0].text == "popd" or (targets and targets[0].text == "-"):
            target = self.before
        else:
            target = targets[0].text if targets else self.variables.get("HOME", Word(text="~")).text
        self.before, self.directory = self.directory, join(self.directory, target)


class Reader:
    """The commands that were found so far, and the number of steps left."""

    def __init__(self) -> None:
        self.commands: list[Simple] = []
        self.programs: set[str] = set()
        self.is_whole = True
        self._texts = MOST_TEXTS
        self._steps = MOST_STEPS

    def may_go_on(self, depth: int) -> bool:
        """Count one step. Return whether the reading may go on.

        If a limit is exceeded, the result is False, and `is_whole` becomes False, because commands may be missing.
        """
        self._steps -= 1
        if self._steps < 0 or depth > DEEPEST or len(self.commands) >= MOST_COMMANDS:
            self.is_whole = False
            return False
        return True

    def read_text(self, text: str, scope: Scope, depth: int, given: Simple) -> None:
        """Read a shell text, whose input is the input of the command `given`.

        `scope` has the known directory and variables. A `cd` or an assignment in the text changes it.
        """
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
            self.is_whole = False
            self._read_split(text, unread, depth)

    def _read_split(self, text: str, scope: Scope, depth: int) -> None:
        """Read the commands that are found by splitting the text, without a grammar.

        Splitting may miss some commands.
        """
        from outlive.observe.shell.split_text import pieces, without_keywords  # noqa: PLC0415 - only texts that the grammar cannot read need this import

        for piece in pieces(text):
            words = tuple(map(_split_word, without_keywords(piece.words)))
            if words or piece.writes:
                command = Simple(
                    words=words,
                    directory=scope.directory,
                    line=one_line(" ".join(word.text for word in words)),
                    writes=tuple(map(_split_word, piece.writes)),
                    elsewhere=scope.elsewhere,
                )
                self.add(command, scope, depth + 1)

    def add(self, command: Simple, scope: Scope, depth: int) -> None:
        """Add a simple command. In place of a wrapper, add the commands that it runs.

        A wrapper is a program that runs another command, such as `env` or `nice`.
        """
        from outlive.observe.shell.wrappers import unwrap  # noqa: PLC0415 - the two modules import each other

        if not self.may_go_on(depth):
            return
        if name := program_name(command):
            self.programs.add(name)
            if name in {"cd", "pushd", "popd"}:
                scope.enter(command.words)
        if not unwrap(self, command, scope, depth):
            self.commands.append(command)


def read(argv: Iterable[str], cwd: str) -> Reader:
    """Return a reader with the commands that `argv` would run in `cwd`.

    Only commands that `argv` names are found.
    """
    words = tuple(Word(text=word) for word in argv)
    reader = Reader()
    line = one_line(" ".join(quote(word.text[: 2 * _LONGEST_LINE]) for word in words[:_LONGEST_LINE]))
    reader.add(Simple(words=words, directory=cwd, line=line), Scope(cwd), 0)
    return reader


def program_name(command: Simple) -> str:
    """Return the name of the program, without its directory.

    The name is empty if the program is unknown. Programs of a project, like `./test` and `bin/test`, keep their paths.
    """
    if not command.words:
        return ""
    word = command.words[0]
    directory, slash, name = word.text.rpartition("/")
    if not word.literal and _UNKNOWN.intersection(name):
        return ""
    is_usual = not slash or directory.endswith(("/bin", "/sbin", "/.bin", "/libexec")) or name == "manage.py"
    return name if is_usual and directory != "./bin" else word.text


def _split_word(text: str) -> Word:
    """Return the `Word` for a word that `split_text.py` has found.

    The word is not literal if a shell would expand it.
    """
    return Word(text=text, literal="$" not in text and "`" not in text)


def one_line(text: str) -> str:
    """Return a command as one line of bounded length."""
    flat = " ".join(text[: 4 * _LONGEST_LINE].split())
    return flat if len(flat) <= _LONGEST_LINE else flat[: _LONGEST_LINE - 1] + "…"


def join(directory: str, path: str) -> str:
    """Return a path as seen from a directory.

    A path whose beginning a shell would expand, such as `~` or `$`, is returned unchanged.
    """
    if path.startswith(("$", "`", "~", "…")):
        return path
    return posixpath.normpath(posixpath.join(directory, path))


@cache
def _grammar() -> Callable[[Reader, str, Scope, int, Simple], bool] | None:
    """Return the grammar's reading function.

    Returns None if the packages of the grammar cannot be loaded.
    """
    try:
        from outlive.observe.shell.bash_grammar import parse  # noqa: PLC0415 - the grammar takes time to load, and may be missing
    except ImportError:
        return None
    return parse

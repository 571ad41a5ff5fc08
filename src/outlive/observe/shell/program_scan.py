"""The programs and the scripts that a command's text names.

A script may be written in any language, in which quotes, comments and semicolons may have another meaning than in a
shell. So a word counts as a program wherever a command may begin. Scripts in directories of the system are not read,
because what they run does not depend on the command.
"""

from __future__ import annotations

import os
from stat import S_ISREG

from outlive.domain.tasks.shells_and_wrappers import OPENING_KEYWORDS, WRAPPERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_LONGEST_SCRIPT, _SHORTEST_LOOK = 64 << 10, 512
_MOST_FILES, _MOST_WORDS, _MOST_PROGRAMS, _MOST_PLACES = 8, 64, 16, 32
_OF_THE_SYSTEM = frozenset({"/usr/bin", "/bin", "/usr/sbin", "/sbin"})
_SEPARATORS = frozenset(" \t\n;|&()`\"'<>{}=$")
_BREAKS = str.maketrans(dict.fromkeys(_SEPARATORS, " "))
_STARTING = frozenset({*OPENING_KEYWORDS, *WRAPPERS, "eval", "-c", "-lc", "-exec", "-execdir"})
"""Words after which a command begins. Options may stand between the word and the command."""
_BEGINS = str.maketrans(dict.fromkeys(";|&`\"'", "\n"))
_OPENINGS = ("$(", "do (", "then (", "else (")
"""Signs after which a command begins. `if (` is left out, because other languages begin a condition with `if (`."""
_NO_CALL = frozenset({"=", "==", "+=", ":=", "}"})
"""Signs that follow a name in other languages. A word before such a sign is not a command."""


class Text:
    """A text that may name programs."""

    def __init__(self, content: str, home: str | None) -> None:
        """Store a text, and the directory that `~` and `$HOME` stand for in it."""
        if home is not None:
            content = content.replace("$HOME/", home + "/").replace("${HOME}/", home + "/")
        self._content, self._home = content, home
        self._words: list[str] | None = None

    def may_name(self, names: Iterable[str]) -> bool:
        """Return whether one of `names` occurs anywhere in the text.

        This check is faster than splitting the text into words.
        """
        return any(name in self._content for name in names)

    @property
    def words(self) -> list[str]:
        """All words that may be a name or a path."""
        if self._words is None:
            words, home = self._content.translate(_BREAKS).split(), self._home
            self._words = words if home is None else [home + each[1:] if each[:2] == "~/" else each for each in words]
        return self._words

    def called(self) -> Iterator[str]:
        """Yield the words that may be the name of a program that the text runs.

        These are the words where a command may begin, such as after a semicolon or a quote.
        """
        content = self._content
        for opening in _OPENINGS:
            content = content.replace(opening, "\n")
        for piece in content.translate(_BEGINS).split("\n"):
            yield from _called(piece.lstrip(" \t(").split())


class ProgramScan:
    """The texts and scripts of a command, read before the command begins.

    The launch of the task waits until the texts and scripts are read.
    """

    def __init__(self, argv: Sequence[str], cwd: str, environ: Mapping[str, str]) -> None:
        home = environ.get("HOME")
        plain = " ".join(word for word in argv if _SEPARATORS.isdisjoint(word))
        self._texts = [Text(each, home) for each in (plain, *argv) if each is plain or not _SEPARATORS.isdisjoint(each)]
        self._scripts: list[str] = []
        self._home = home
        self.programs: list[str] = []
        """The files that the command names. Some of them may be scripts."""
        self._find(cwd, environ.get("PATH", os.defpath))

    def texts(self) -> Iterator[Text]:
        """Yield the command's own texts, and then the text of each script they name.

        A command's own text is for example the argument of `bash -c`.
        """
        yield from self._texts
        while self._scripts:
            content = _content(self._scripts.pop(0))
            if content:
                self._texts.append(Text(content, self._home))
                yield self._texts[-1]

    def _find(self, cwd: str, places: str) -> None:
        words = dict.fromkeys(word for text in self._texts for word in text.words if word[0] != "-")
        likely = sorted(words, key=lambda word: "/" not in word and "." not in word)
        named = [path for word in likely[:_MOST_WORDS] if _is_file(path := os.path.join(cwd, word))]
        called = dict.fromkeys(word for text in self._texts for word in text.called() if "/" not in word)
        found = [_found(word, cwd, places) for word in list(called)[:_MOST_PROGRAMS]]
        own = [path for path in found if path is not None and os.path.dirname(path) not in _OF_THE_SYSTEM]
        self._scripts = [*named, *own][:_MOST_FILES]
        self.programs = [*named, *(path for path in found if path is not None)]


def _found(name: str, cwd: str, places: str) -> str | None:
    """Return the path of a program, found as a shell finds it.

    `places` is the value of PATH.
    """
    for place in places.split(":")[:_MOST_PLACES]:
        path = os.path.join(cwd, place, name)
        if _is_file(path) and os.access(path, os.X_OK):
            return path
    return None


def _is_file(path: str) -> bool:
    try:
        return S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _called(words: list[str]) -> Iterator[str]:
    """Yield the words that name a program which the command runs.

    These are the first words of commands.
    """
    is_beginning = True
    for at, word in enumerate(words):
        # Options, durations (as of `timeout`) and assignments may stand between a wrapper and its command.
        is_between = is_beginning and (word[0] in "-0123456789" or "=" in word[1:])
        is_label = at == 0 and word[-1] == ")" and "(" not in word  # the word is a pattern of `case`, such as `a)`
        if is_beginning and not _NO_CALL.intersection(words[at + 1 : at + 2]):
            yield word.rstrip(")")
        is_beginning = word in _STARTING or is_between or is_label


def _content(path: str) -> str:
    """Return the beginning of a script, or no text for a binary or unreadable file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        content = os.read(fd, _SHORTEST_LOOK)
        if b"\0" in content:
            return ""
        return (content + os.read(fd, _LONGEST_SCRIPT)).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(fd)

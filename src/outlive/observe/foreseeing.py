"""What a command is going to run, as far as its text tells, and the scripts that it names.

A script is named by its path, as something in the directory that the command runs in, or as a program that
is found where programs are. Those of the system are not read: what they call, they call for everybody.
"""

from __future__ import annotations

import os
from stat import S_ISREG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_LONGEST_SCRIPT, _SHORTEST_LOOK = 64 << 10, 512
_MOST_FILES, _MOST_WORDS, _MOST_PROGRAMS, _MOST_PLACES = 8, 64, 16, 32
_OF_THE_SYSTEM = frozenset({"/usr/bin", "/bin", "/usr/sbin", "/sbin"})
_SEPARATORS = frozenset(" \t\n;|&()`\"'<>{}=$")
_BREAKS = str.maketrans(dict.fromkeys(_SEPARATORS, " "))
_STARTING = frozenset(
    {
        *("if", "then", "elif", "else", "do", "while", "until", "!", "{", "exec", "eval", "command", "env"),
        *("nohup", "time", "timeout", "nice", "ionice", "chrt", "taskset", "setsid", "stdbuf", "xargs", "parallel"),
        *("watch", "strace", "-c", "-lc", "-exec", "-execdir"),
    }
)
"""After these, and their options, a command begins."""
_BEGINS = str.maketrans(dict.fromkeys(";|&`\"'", "\n"))
_OPENINGS = ("$(", "do (", "then (", "else (")
"""After these too; but not after `if (`, with which other languages begin a condition."""
_NO_CALL = frozenset({"=", "==", "+=", ":=", "}"})
"""What follows a name in other languages."""


class Text:
    """Something that may name programs."""

    def __init__(self, content: str, home: str | None) -> None:
        """`home`: what a tilde means in it."""
        if home is not None:
            content = content.replace("$HOME/", home + "/").replace("${HOME}/", home + "/")
        self._content, self._home = content, home
        self._words: list[str] | None = None

    def may_name(self, names: Iterable[str]) -> bool:
        """Whether one of them is in it at all; that takes a tenth of what its words take."""
        return any(name in self._content for name in names)

    @property
    def words(self) -> list[str]:
        """Whatever may be a name, or a path."""
        if self._words is None:
            words, home = self._content.translate(_BREAKS).split(), self._home
            self._words = words if home is None else [home + each[1:] if each[:2] == "~/" else each for each in words]
        return self._words

    def called(self) -> Iterator[str]:
        """The words that stand where a command may begin; in other languages, also what stands in quotes."""
        content = self._content
        for opening in _OPENINGS:
            content = content.replace(opening, "\n")
        for piece in content.translate(_BEGINS).split("\n"):
            yield from _called(piece.lstrip(" \t(").split())


class Foreseen:
    """One command, looked through before it begins; a launch waits for that."""

    def __init__(self, argv: Sequence[str], cwd: str, environ: Mapping[str, str]) -> None:
        home = environ.get("HOME")
        plain = " ".join(word for word in argv if _SEPARATORS.isdisjoint(word))
        self._texts = [Text(said, home) for said in (plain, *argv) if said is plain or not _SEPARATORS.isdisjoint(said)]
        self._scripts: list[str] = []
        self._home = home
        self.programs: list[str] = []
        """The files that it names, of which some may be scripts."""
        self._find(cwd, environ.get("PATH", os.defpath))

    def texts(self) -> Iterator[Text]:
        """Its own text, then what it names; each is read once, and only if the ones before did not tell enough."""
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
    """Where a program is, as a shell looks for it."""
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
    """Where a command begins, or what another one starts."""
    is_beginning = True
    for at, word in enumerate(words):
        # Whatever lies between: options, how long, variables.
        is_between = is_beginning and (word[0] in "-0123456789" or "=" in word[1:])
        is_label = at == 0 and word[-1] == ")" and "(" not in word  # of a `case`
        if is_beginning and not _NO_CALL.intersection(words[at + 1 : at + 2]):
            yield word.rstrip(")")
        is_beginning = word in _STARTING or is_between or is_label


def _content(path: str) -> str:
    """The beginning of a script; nothing of what is none."""
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

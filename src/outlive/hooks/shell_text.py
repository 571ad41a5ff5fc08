"""A shell text as far as advice needs it: its commands, and which of them are sent to the background.

Quotes, escapes, comments and here-documents are stepped over; nothing is expanded. A grammar would
know more (`outlive.observe`), and costs more than a hook may take.
"""

from __future__ import annotations

from outlive.domain.value import Value

_BLANKS = " \t"
_MARKS = frozenset("'\"`\\# \t\n;|()&<>")
# What only wraps a command, and those of its options that take the next word.
_WRAPPERS: dict[str, tuple[str, ...]] = {
    "sudo": ("-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "-U", "--user", "--group"),
    "env": ("-u", "-C", "--unset", "--chdir"),
    "nice": ("-n", "--adjustment"),
    "timeout": ("-k", "-s", "--kill-after", "--signal"),
    "stdbuf": ("-i", "-o", "-e"),
    "time": ("-f", "-o"),
    "exec": ("-a",),
    **dict.fromkeys(("command", "then", "do", "else", "!", "{", "("), ()),
}


_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash", "fish"))
_SHELL_OPTIONS_WITH_A_WORD = ("--rcfile", "--init-file")
# Whoever wraps a command more often than this does not do it out of habit.
_DEEPEST = 3


class Piece(Value):
    """One simple command of a text."""

    words: tuple[str, ...]
    is_background: bool = False
    ended_by: str = ""
    """The mark after it; of two letters only if it is `&&`."""


def pieces(text: str) -> list[Piece]:
    """The simple commands of a text, in order."""
    reader = _Reader(text)
    return reader.read()


def pieces_within(text: str, depth: int = 0) -> list[Piece]:
    """The simple commands of a text, each followed by those of a text that it gives to another shell."""
    found = []
    for piece in pieces(text):
        found.append(piece)
        inner = _given_text(program(piece)) if depth < _DEEPEST else None
        if inner is not None:
            found += pieces_within(inner, depth + 1)
    return found


def _given_text(words: tuple[str, ...]) -> str | None:
    """What a shell is told to run: `-c`, alone or among other letters, and the first word that is no option."""
    if not words or words[0] not in _SHELLS:
        return None
    is_told, at = False, 1
    while at < len(words) and words[at][:1] in ("-", "+") and words[at] not in ("-", "--"):
        option = words[at]
        is_short = option[:2] != "--"
        is_told = is_told or (is_short and option[0] == "-" and "c" in option)
        # `-o pipefail`, also as the last of several letters.
        at += 2 if option in _SHELL_OPTIONS_WITH_A_WORD or (is_short and option[-1] in "oO") else 1
    at += words[at : at + 1] in (("-",), ("--",))
    return words[at] if is_told and at < len(words) else None


def program(piece: Piece) -> tuple[str, ...]:
    """The words of a command from its program on: without assignments, and without what only wraps it."""
    words = list(piece.words)
    while words and (words[0].rpartition("/")[2] in _WRAPPERS or _is_assignment(words[0])):
        wrapper = words.pop(0).rpartition("/")[2]
        while wrapper in _WRAPPERS and words and words[0].startswith("-"):
            del words[: 2 if words[0] in _WRAPPERS[wrapper] else 1]
        if wrapper == "timeout":
            del words[:1]
    return (words[0].rpartition("/")[2], *words[1:]) if words else ()


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._found: list[Piece] = []
        self._words: list[str] = []
        self._word: str | None = None
        self._heredocs: list[str] = []
        self._is_place = False
        """Whether the next word says where something is redirected to."""

    def read(self) -> list[Piece]:
        while self._at < len(self._text):
            letter = self._text[self._at]
            self._at += 1
            if letter in _MARKS:
                self._mark(letter)
            else:
                self._word = (self._word or "") + letter
        self._end_command("")
        return self._found

    def _mark(self, letter: str) -> None:
        """A letter that the shell does not take for itself."""
        if letter in "'\"`":
            self._quoted(letter)
        elif letter == "\\":
            self._escaped()
        elif letter in _BLANKS:
            self._end_word()
        elif letter == "&":
            self._ampersand()
        elif letter in "<>":
            self._redirection(letter)
        elif letter == "(" and (self._word or "").endswith("$") and self._text[self._at : self._at + 1] == "(":
            self._arithmetic()
        elif letter != "#":
            self._end_command(letter)
            if letter == "\n":
                self._skip_heredocs()
        elif self._word is None:
            self._at = _find(self._text, "\n", self._at)
        else:
            self._word += letter

    def _escaped(self) -> None:
        letter = self._text[self._at : self._at + 1]
        self._at += 1
        if letter != "\n":
            self._word = (self._word or "") + letter

    def _quoted(self, quote: str) -> None:
        end = self._at
        while end < len(self._text) and self._text[end] != quote:
            end += 2 if self._text[end] == "\\" and quote != "'" else 1
        within = self._text[self._at : end]
        self._word = (self._word or "") + (_unescaped(within) if quote == '"' else within)
        self._at = end + 1

    def _ampersand(self) -> None:
        following = self._text[self._at : self._at + 1]
        if following == "&":
            self._at += 1
            self._end_command("&&")
        elif self._text[self._at - 2 : self._at] == "|&":
            pass  # a pipe for both outputs
        elif following == ">":  # &>file
            self._end_word()
        else:
            self._end_command("&")

    def _arithmetic(self) -> None:
        """`$((a & b))`: a number, whatever is in it."""
        end = _find(self._text, "))", self._at)
        self._word = (self._word or "") + self._text[self._at - 1 : end + 2]
        self._at = end + 2

    def _redirection(self, letter: str) -> None:
        """`2>&1`, `<<EOF` and `>file`: none of them is a word of the command, and no `&` in them ends it."""
        if self._word is not None and self._word.isdigit():
            self._word = None
        self._end_word()
        rest = self._text[self._at :]
        self._is_place = True
        if rest.startswith(("&", ">")):
            self._at += 1
        elif letter == "<" and rest.startswith("<<"):  # a text in place
            self._at += 2
        elif letter == "<" and rest.startswith("<"):
            self._at += 1 + rest[1:].startswith("-")
            start = self._at + len(self._text[self._at :]) - len(self._text[self._at :].lstrip(_BLANKS))
            end = start
            while end < len(self._text) and self._text[end] not in " \t\n;|&()<>":
                end += 1
            self._heredocs.append(self._text[start:end].strip("'\"\\"))
            self._at, self._is_place = end, False

    def _skip_heredocs(self) -> None:
        for mark in self._heredocs:
            while self._at < len(self._text):
                end = _find(self._text, "\n", self._at)
                line, self._at = self._text[self._at : end], end + 1
                if line.strip() == mark:
                    break
        self._heredocs = []

    def _end_word(self) -> None:
        if self._word is not None:
            if not self._is_place:
                self._words.append(self._word)
            self._word, self._is_place = None, False

    def _end_command(self, mark: str) -> None:
        self._end_word()
        is_background = mark == "&"
        if self._words:
            self._found.append(Piece(words=tuple(self._words), is_background=is_background, ended_by=mark))
            self._words = []
        elif is_background and self._found:  # `(a; b) &`
            self._found[-1] = self._found[-1].but(is_background=True)


def _unescaped(text: str) -> str:
    """What stands between double quotes as the command is given it: only some letters need a backslash there."""
    parts, at = [], 0
    while 0 <= (mark := text.find("\\", at)) < len(text) - 1:
        following = text[mark + 1]
        parts += [text[at:mark], "" if following in '$`"\\\n' else "\\", "" if following == "\n" else following]
        at = mark + 2
    return "".join(parts) + text[at:] if parts else text


def _find(text: str, mark: str, start: int) -> int:
    at = text.find(mark, start)
    return len(text) if at < 0 else at

"""A shell text split into its simple commands, without a grammar.

Variables and substitutions are not expanded. Hooks load this module before each use of a tool, so the module imports
only what loads fast.
"""

from __future__ import annotations

from outlive.domain.tasks.shells_and_wrappers import CLOSING_KEYWORDS, OPENING_KEYWORDS, SHELLS, WRAPPERS
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_BLANKS = " \t\r"
_MARKS = frozenset("'\"`\\# \t\r\n;|()&<>")
_KEYWORDS = frozenset((*OPENING_KEYWORDS, *CLOSING_KEYWORDS))
# If a row of `WRAPPERS` has only these fields, the wrapper runs its command unchanged, on this machine and in the
# foreground. Then the function `program` skips the wrapper.
_HARMLESS_FACTS = frozenset(("takes", "operands", "directory", "writes", "reads"))
_SHELL_OPTIONS_WITH_A_WORD = ("--rcfile", "--init-file")
# A text within a text, as in `sh -c`, is split down to this depth.
_DEEPEST = 3
# The search for the end of `$((` stops after this many characters. Otherwise its time could grow with the square of
# the text's length.
_LONGEST_ARITHMETIC = 1000


class Piece(Value):
    """One simple command of a text."""

    words: tuple[str, ...]
    """The words of the command without quotes. Empty if the command has only redirections."""
    writes: tuple[str, ...] = ()
    """The files that the redirections of the command open for writing."""
    heredocs: tuple[str, ...] = ()
    """The here-documents of the command's line, if no other command follows on that line."""
    is_background: bool = False
    ended_by: str = ""
    """The operator after the command, such as `;`, `|` or `&&`.

    Empty at the end of the text.
    """


def pieces(text: str) -> list[Piece]:
    """Return the simple commands of a text, in order."""
    return _Splitter(text).split()


def pieces_within(text: str, depth: int = 0) -> list[Piece]:
    """Return the commands of a text and of the texts that these commands run.

    In the result, a command such as `sh -c text` is followed by the commands of its text. `depth` counts how many texts
    surround this one.
    """
    found = []
    for piece in pieces(text):
        found.append(piece)
        inner = _given_text(program(piece)) if depth < _DEEPEST else None
        if inner is not None:
            found += pieces_within(inner, depth + 1)
    return found


def program(piece: Piece) -> tuple[str, ...]:
    """Return a command's program and its arguments, without wrappers before them.

    A wrapper is a program that runs another command, such as `env`. A wrapper that detaches its command, adds words to
    it or runs it in another place counts as the program.
    """
    words = without_keywords(piece.words)
    while words:
        name = words[0].rpartition("/")[2]
        wrapper = WRAPPERS.get(name)
        if wrapper is None or not _HARMLESS_FACTS.issuperset(wrapper):
            return (name, *words[1:])
        takes = wrapper.get("takes", "").split()
        at = 1
        while at < len(words) and words[at].startswith("-"):
            at += 2 if words[at] in takes else 1
        words = without_keywords(words[at + wrapper.get("operands", 0) :])
    return ()


def without_keywords(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command's words without keywords and assignments at the beginning."""
    at = 0
    while at < len(words) and (words[at] in _KEYWORDS or _is_assignment(words[at])):
        at += 1
    return words[at:]


def shell_options(words: Sequence[str]) -> tuple[str, int]:
    """Return the option letters of a call such as `bash -ec`.

    The second result is the index of the call's first operand.
    """
    letters, at = "", 1
    while at < len(words) and words[at][:1] in ("-", "+") and words[at] not in ("-", "--"):
        option = words[at]
        is_short = option[:2] != "--"
        if is_short and option[0] == "-":
            letters += option[1:]
        # `-o pipefail` takes the next word, even if other letters precede the `o`: `-eo pipefail`.
        at += 2 if option in _SHELL_OPTIONS_WITH_A_WORD or (is_short and option[-1] in "oO") else 1
    return letters, at + (at < len(words) and words[at] in ("-", "--"))


def _given_text(words: tuple[str, ...]) -> str | None:
    """Return the text that a shell runs by `-c`, or None if there is no text."""
    if not words or words[0] not in SHELLS:
        return None
    letters, at = shell_options(words)
    return words[at] if "c" in letters and at < len(words) else None


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier()


class _Splitter:
    """One pass over a text, from one special character to the next."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._found: list[Piece] = []
        self._words: list[str] = []
        self._writes: list[str] = []
        self._parts: list[str] = []
        """The parts of the word that is being read. For `''`, there is one empty part."""
        self._operator = ""
        """The redirection sign, such as `>`, whose target is the next word."""
        self._delimiters: list[str] = []
        """The words that end the here-documents that begin at the next line."""

    def split(self) -> list[Piece]:
        """Return the simple commands of the text."""
        text = self._text
        while (start := self._at) < len(text):
            end = start
            while end < len(text) and text[end] not in _MARKS:
                end += 1
            if start < end:
                self._parts.append(text[start:end])
                self._at = end
            else:
                self._at = end + 1
                self._take_mark(text[start])
        self._end_command("")
        return self._found

    def _take_mark(self, letter: str) -> None:
        """Read the part of the text that begins with the special character `letter`."""
        if letter in "'\"`":
            self._take_quoted(letter)
        elif letter == "\\":
            self._take_escaped()
        elif letter in _BLANKS:
            self._end_word()
        elif letter == "&":
            self._take_ampersand()
        elif letter in "<>":
            self._take_redirection(letter)
        elif letter == "(" and (end := self._end_of_arithmetic()):
            self._parts.append(self._text[self._at - 1 : end])
            self._at = end
        elif letter != "#":
            self._end_command(letter)
            if letter == "\n" and self._delimiters:
                self._take_heredocs()
        elif self._parts:
            self._parts.append(letter)
        else:
            self._at = _find(self._text, "\n", self._at)

    def _take_escaped(self) -> None:
        letter = self._text[self._at : self._at + 1]
        self._at += 1
        if letter != "\n":
            self._parts.append(letter)

    def _take_quoted(self, quote: str) -> None:
        """Add a quoted text to the present word. Text in backticks keeps the backticks."""
        start = end = self._at
        while end < len(self._text) and self._text[end] != quote:
            end += 2 if self._text[end] == "\\" and quote != "'" else 1
        self._at = end + 1
        within = self._text[start:end]
        if quote == "`":
            within = f"`{within}`"
        self._parts.append(_unescaped(within) if quote == '"' else within)

    def _end_of_arithmetic(self) -> int:
        """Return where arithmetic such as `$((a & b))` ends.

        Returns 0 if the text is not arithmetic, or if the arithmetic runs a command.
        """
        if not (self._parts and self._parts[-1].endswith("$") and self._text.startswith("(", self._at)):
            return 0
        end = self._text.find("))", self._at, self._at + _LONGEST_ARITHMETIC) + 2
        return 0 if end < 2 or self._text.find("$(", self._at, end) >= 0 else end

    def _take_ampersand(self) -> None:
        if self._text.startswith("&", self._at):
            self._at += 1
            self._end_command("&&")
        elif self._text.startswith(">", self._at):  # as in `&>file`
            self._end_word()
        elif self._text[self._at - 2 : self._at] != "|&":  # `|&` is a pipe for both outputs
            self._end_command("&")

    def _take_redirection(self, letter: str) -> None:
        """Read `2>&1`, `<<EOF` or `>file`, so that no `&` or `|` in it ends the command."""
        if "".join(self._parts).isdigit():
            self._parts = []
        self._end_word()
        following = self._text[self._at : self._at + 1]
        self._operator = letter
        if self._text.startswith("<<<", self._at - 1):  # a here-string, such as `<<<word`
            self._at += 2
        elif letter == following == "<":
            self._take_delimiter()
        elif following == "(":  # as in `<(command)`
            self._operator = ""
        elif following and following in "&>|":
            self._operator += following
            self._at += 1

    def _take_delimiter(self) -> None:
        """Remember the word after `<<`, which ends the here-document."""
        start = self._at + (2 if self._text.startswith("-", self._at + 1) else 1)
        while self._text[start : start + 1] in (" ", "\t"):
            start += 1
        end = start
        while end < len(self._text) and self._text[end] not in " \t\r\n;|&()<>":
            end += 1
        self._delimiters.append(self._text[start:end].strip("'\"\\"))
        self._at, self._operator = end, ""

    def _take_heredocs(self) -> None:
        """Attach the here-documents whose content begins here to the last command."""
        bodies = []
        for delimiter in self._delimiters:
            start = end = self._at
            while end < len(self._text):
                begin, end = end, _find(self._text, "\n", end) + 1
                if self._text[begin:end].strip() == delimiter:
                    bodies.append(self._text[start:begin])
                    break
            else:
                bodies.append(self._text[start:])
            self._at = end
        self._delimiters = []
        if self._found:
            self._found[-1] = self._found[-1].but(heredocs=tuple(bodies))

    def _end_word(self) -> None:
        if not self._parts:
            return
        word, operator = "".join(self._parts), self._operator
        self._parts, self._operator = [], ""
        if not operator:
            self._words.append(word)
        elif ">" in operator and not (operator == ">&" and (word == "-" or word.isdigit())):
            self._writes.append(word)

    def _end_command(self, mark: str) -> None:
        self._end_word()
        self._operator = ""
        words, writes, is_background = tuple(self._words), tuple(self._writes), mark == "&"
        self._words, self._writes = [], []
        last = self._found[-1] if self._found else None
        if words or (writes and not (last and last.ended_by == ")")):
            self._found.append(Piece(words=words, writes=writes, is_background=is_background, ended_by=mark))
        elif last and (writes or is_background):  # as in `(a; b) >file &`
            is_background = is_background or last.is_background
            self._found[-1] = last.but(writes=last.writes + writes, is_background=is_background, ended_by=mark)


def _unescaped(text: str) -> str:
    """Return a text in double quotes as a command receives it."""
    parts, at = [], 0
    while 0 <= (mark := text.find("\\", at)) < len(text) - 1:
        following = text[mark + 1]
        parts += [text[at:mark], "" if following in '$`"\\\n' else "\\", "" if following == "\n" else following]
        at = mark + 2
    return "".join(parts) + text[at:] if parts else text


def _find(text: str, mark: str, start: int) -> int:
    at = text.find(mark, start)
    return len(text) if at < 0 else at

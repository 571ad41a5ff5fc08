"""The words of a shell text, without quotes and with known variables expanded."""

from __future__ import annotations

import posixpath

from outlive.observe.shell.commands import Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tree_sitter import Node

    from outlive.observe.shell.commands import Scope

_EXPANSIONS = frozenset(("simple_expansion", "expansion"))
_SUBSTITUTIONS = frozenset(("command_substitution", "process_substitution"))
_JOINED = frozenset(("string", "translated_string", "concatenation", "command_name"))
_PLAIN = frozenset(("word", "number", "string_content", "variable_name", "extglob_pattern", "test_operator"))
_QUOTED_ESCAPES = {'"': '"', "$": "$", "`": "`", "\\": "\\", "\n": ""}
_ANSI_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
_DEEPEST_WORD = 20
_LONGEST_WORD = 64 * 1024
# If the braces of a word may stand for more words than these limits allow, the word is unknown.
_MOST_BRACES = 8
_MOST_ALTERNATIVES = 1000


class WordReader:
    """A reader of the words in a syntax tree. It passes inner commands to `visit`."""

    def __init__(self, source: bytes, visit: Callable[[Node, Scope, int], None]) -> None:
        self._source = source
        self._visit = visit

    def __call__(self, node: Node, scope: Scope, depth: int) -> Word:
        """Return the word that a node of the syntax tree stands for."""
        parts = list(self._parts(node, scope, depth, quoted=False, first=True, level=0))
        text = "".join(part.text for part in parts)[:_LONGEST_WORD]
        return Word(text=text, literal=all(part.literal for part in parts))

    def words(self, node: Node, scope: Scope, depth: int) -> list[Word]:
        """Return the words of an argument. A variable or braces may give several words."""
        if node.type == "concatenation" and any(self.source_of(child) == "{" for child in node.named_children):
            return self._braced(node, scope, depth)
        word = self(node, scope, depth)
        bare = node.named_children[0] if node.type == "command_name" and node.named_children else node
        if bare.type in _EXPANSIONS and word.literal:
            return [Word(text=part) for part in word.text.split()]
        return [word]

    def _braced(self, node: Node, scope: Scope, depth: int) -> list[Word]:
        """Return the words of an argument with braces: `src{,.bak}` is `src src.bak`."""
        parts: list[Word] = []
        text = ""
        for child in node.named_children:
            source = self.source_of(child)
            if child.type == "word" and "\\" not in source:
                text += self._plain(source, scope, quoted=False, first=not text).text
            else:  # a quoted or expanded part, which the braces cannot divide
                text += f"\0{len(parts)}\0"
                parts.append(self(child, scope, depth))
        found = []
        for each in _alternatives(text) if _is_small(text) else [text + "…"]:
            of_word = [parts[int(piece)] if at % 2 else Word(text=piece) for at, piece in enumerate(each.split("\0"))]
            is_known = all(part.literal for part in of_word) and _is_small(text)
            found.append(Word(text="".join(part.text for part in of_word)[:_LONGEST_WORD], literal=is_known))
        return [word for word in found if word.text]

    def source_of(self, node: Node, begin: Node | None = None) -> str:
        """Return the source text of a node of the syntax tree.

        If the node `begin` is given, the text starts at `begin`.
        """
        return self._source[(begin or node).start_byte : node.end_byte].decode("utf-8", "surrogateescape")

    def _parts(self, node: Node, scope: Scope, depth: int, *, quoted: bool, first: bool, level: int) -> Iterator[Word]:
        kind = node.type
        if level > _DEEPEST_WORD:
            yield Word(text="…", literal=False)
        elif kind in _JOINED:
            yield from self._joined(node, scope, depth, quoted=quoted or kind == "string", first=first, level=level + 1)
        elif kind == "raw_string":
            yield Word(text=self.source_of(node)[1:-1])
        elif kind == "ansi_c_string":
            yield Word(text=_unescaped(self.source_of(node)[2:-1], _ANSI_ESCAPES))
        elif kind in _PLAIN:
            yield self._plain(self.source_of(node), scope, quoted=quoted, first=first)
        elif kind in _EXPANSIONS:
            yield self._expanded(node, scope, depth)
        elif kind in _SUBSTITUTIONS:
            yield self._substituted(node, scope, depth)
        else:
            self._visit(node, scope, depth)
            yield Word(text=self.source_of(node), literal=kind == "brace_expression")

    def _joined(self, node: Node, scope: Scope, depth: int, *, quoted: bool, first: bool, level: int) -> Iterator[Word]:
        """Yield the parts of a word, and the blanks between them in strings.

        The grammar drops these blanks, so the syntax tree has no nodes for them.
        """
        is_string = node.type == "string"
        at = node.start_byte + is_string
        for child in node.named_children:
            if is_string and child.start_byte > at:
                yield self._between(at, child.start_byte)
            yield from self._parts(child, scope, depth, quoted=quoted, first=first, level=level)
            at, first = child.end_byte, False
        if is_string and at < node.end_byte - 1:
            yield self._between(at, node.end_byte - 1)

    def _between(self, start: int, end: int) -> Word:
        return Word(text=_unescaped(self._source[start:end].decode("utf-8", "surrogateescape"), _QUOTED_ESCAPES))

    @staticmethod
    def _plain(text: str, scope: Scope, *, quoted: bool, first: bool) -> Word:
        if quoted:
            return Word(text=_unescaped(text, _QUOTED_ESCAPES))
        if first and (text == "~" or text.startswith("~/")) and "HOME" in scope.variables:
            text = scope.variables["HOME"].text + text[1:]
        return Word(text=_unescaped(text, None))

    def _expanded(self, node: Node, scope: Scope, depth: int) -> Word:
        """Return the value of a variable.

        The value is unknown if the text does not set the variable, or if the variable is empty and has a default
        (`${name:-default}`).
        """
        text = self.source_of(node)
        self._visit(node, scope, depth)
        name, _, default = text.strip("${}").partition(":-")
        if name == "PWD" and not default:
            return Word(text=scope.directory)
        known = scope.variables.get(name)
        if known is not None and (known.text or not default):
            return known
        return Word(text=text, literal=False)

    def _substituted(self, node: Node, scope: Scope, depth: int) -> Word:
        """Return the output of a command substitution.

        The output is known only for `pwd`, and partly for `mktemp`.
        """
        self._visit(node, scope, depth)
        text = self.source_of(node)
        if node.type == "process_substitution":
            return Word(text="/dev/fd/63", literal=False)
        command = text.strip("$()` \n").split()
        if command[:1] == ["mktemp"]:
            named = [word.strip("\"'") for word in command[1:] if not word.startswith("-")]
            is_usual = not named or bool({"-t", "--tmpdir"}.intersection(command))
            return Word(text=posixpath.join(scope.temporary, "…") if is_usual else named[-1], literal=False)
        if command == ["pwd"]:
            return Word(text=scope.directory)
        return Word(text=text, literal=False)


def _is_small(text: str) -> bool:
    """Return whether the braces of a word stand for few words."""
    braces = text.count("{")
    return braces <= _MOST_BRACES and (text.count(",") + 1) ** braces <= _MOST_ALTERNATIVES


def _alternatives(text: str) -> list[str]:
    """Return the words that a word with braces stands for.

    If the braces contain no comma, the only result is the word itself.
    """
    begin = text.find("{")
    while begin >= 0:
        options, end = _options(text, begin)
        if len(options) > 1:
            rests = _alternatives(text[end:])
            within = [inner for option in options for inner in _alternatives(option)]
            return [text[:begin] + inner + rest for inner in within for rest in rests]
        begin = text.find("{", begin + 1)
    return [text]


def _options(text: str, begin: int) -> tuple[list[str], int]:
    """Return the alternatives between the braces that begin at `begin`.

    The second result is the offset after the braces. Unclosed braces have no alternatives.
    """
    options: list[str] = []
    depth, start = 0, begin + 1
    for at in range(begin, len(text)):
        if text[at] == "{":
            depth += 1
        elif text[at] == "}":
            depth -= 1
            if depth == 0:
                return [*options, text[start:at]], at + 1
        elif text[at] == "," and depth == 1:
            options.append(text[start:at])
            start = at + 1
    return [], begin


def _unescaped(text: str, meanings: dict[str, str] | None) -> str:
    """Return the text without its backslashes.

    `meanings` maps a letter to its meaning after a backslash, such as a newline for `n`. If a letter has no meaning
    there, its backslash stays.
    """
    if "\\" not in text:
        return text
    done, letters = [], iter(text)
    for letter in letters:
        if letter != "\\":
            done.append(letter)
            continue
        escaped = next(letters, "")
        done.append(meanings.get(escaped, "\\" + escaped) if meanings is not None else escaped.strip("\n"))
    return "".join(done)

"""JSON with comments, or JSON5, edited as text: every byte that is not ours stays as it is.

A parser that gives back values would lose comments, order and spacing, so this one gives back
places. Edits are insertions and cuts at those places.
"""

from __future__ import annotations

from outlive.domain.errors import UserError
from outlive.domain.text import from_json, to_json
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_SPACE = " \t\r\n\ufeff"
_QUOTES = "\"'"


class Node(Value):
    """A value in a text, and where it stands."""

    kind: str
    start: int
    end: int
    members: tuple[Member, ...] = ()
    """Of an object; of an array they have no key."""


class Member(Value):
    """One entry of an object or an array."""

    key: str
    start: int
    node: Node


def parse(text: str) -> Node:
    """The places of everything in a text; `UserError` if it is no JSON."""
    reader = _Reader(text)
    reader.skip()
    try:
        node = reader.value()
    except RecursionError as error:
        raise UserError("it is nested too deeply", "nothing was changed") from error
    reader.skip()
    if reader.at < len(text):
        raise reader.wrong()
    return node


def value_of(text: str, node: Node) -> object:
    """The value at a place."""
    if node.kind == "object":
        return {member.key: value_of(text, member.node) for member in node.members}
    if node.kind == "array":
        return [value_of(text, member.node) for member in node.members]
    return _scalar(text[node.start : node.end])


def _scalar(text: str) -> object:
    """What a word stands for. One that only JSON5 has (`'it'`, `.5`) is not ours, and need not be understood."""
    if text[:1] == "'":
        return text[1:-1]
    try:
        return from_json(text)
    except ValueError:
        return text


def find(root: Node, path: Sequence[str | int]) -> Node | None:
    """What stands under a path of keys, or of places in an array; of a key that is there twice, what clients read."""
    node: Node | None = root
    for key in path:
        found = _with_key(node, key) if node is not None else []
        node = found[-1].node if found else None
    return node


def _with_key(node: Node, key: str | int) -> list[Member]:
    return [each for index, each in enumerate(node.members) if key == (each.key if isinstance(key, str) else index)]


def find_to_edit(text: str, path: Sequence[str | int]) -> Node | None:
    """What stands under a path; `UserError` if a key of it is there twice.

    Parsers take the last and people read the first: whichever we edited, somebody would lose what they meant.
    """
    node: Node | None = parse(text)
    for depth, key in enumerate(path, 1):
        found = _with_key(node, key) if node is not None else []
        if len(found) > 1:
            name = ".".join(map(str, path[:depth]))
            raise UserError(
                f"it has {name} twice, of which only the last is read", "keep one of them; nothing was changed"
            )
        node = found[0].node if found else None
    return node


def append(text: str, path: Sequence[str], item: object) -> str:
    """The text with an item at the end of the array under a path; what is missing on the way is made."""
    return _insert(text, path, [item], is_array=True)


def set_member(text: str, path: Sequence[str], value: object) -> str:
    """The text with a new member under a path, which must not be there yet."""
    return _insert(text, path, value, is_array=False)


def carry(there: str, text: str, path: Sequence[str]) -> str:
    """The text with those members of the object under a path that only the other text has."""
    old, new = (find(parse(each), path) if each.strip(_SPACE) else None for each in (there, text))
    if old is None or new is None or old.kind != "object":
        return text
    known = [each.key for each in new.members]
    for member in old.members:
        if member.key not in known:
            text = set_member(text, (*path, member.key), value_of(there, member.node))
    return text


def cut(text: str, path: Sequence[str | int], is_ours: Callable[[object], bool]) -> str:
    """The text without those entries of the object or array under a path that are ours."""
    while True:
        node = find_to_edit(text, path)
        members = node.members if node is not None else ()
        index = next((i for i, each in enumerate(members) if is_ours(value_of(text, each.node))), None)
        if index is None:
            return text
        text = _cut_member(text, members, index)


def cut_key(text: str, path: Sequence[str]) -> str:
    """The text without the member under a path, which must be there."""
    find_to_edit(text, path)
    above = find(parse(text), path[:-1])
    assert above is not None  # noqa: S101 - the caller has found it
    return _cut_member(text, above.members, [each.key for each in above.members].index(path[-1]))


def cut_empty(text: str, path: Sequence[str]) -> str:
    """The text without the member under a path, if there is nothing in it, not even a comment."""
    node = find_to_edit(text, path)
    if node is None or node.kind == "scalar" or text[node.start + 1 : node.end - 1].strip(_SPACE):
        return text
    return cut_key(text, path)


def _insert(text: str, path: Sequence[str], value: object, *, is_array: bool) -> str:
    if not text.strip(_SPACE):
        text = "{}\n"
    root = parse(text)
    find_to_edit(text, path)
    for depth in range(len(path), -1, -1):
        node = find(root, path[:depth])
        if node is None:
            continue
        if depth == len(path):
            if node.kind != "array" or not is_array:
                raise UserError(f"{'.'.join(path)} is not what it should be", "look at the file; nothing was changed")
            assert isinstance(value, list)  # noqa: S101 - append gave it
            return _insert_entry(text, node, None, value[0])
        if node.kind != "object":
            raise UserError(f"{'.'.join(path[:depth]) or 'the file'} is no JSON object", "nothing was changed")
        for key in reversed(path[depth + 1 :]):
            value = {key: value}
        return _insert_entry(text, node, path[depth], value)
    raise AssertionError(path)


def _insert_entry(text: str, node: Node, key: str | None, value: object) -> str:
    """One more entry at the end of an object or array, written as its neighbours are."""
    unit = _unit(text)
    outer = _indent_at(text, node.start)
    is_flat = bool(node.members) and "\n" not in text[node.start : node.end]
    inner = _indent_at(text, node.members[-1].start) if node.members and not is_flat else outer + unit
    written = (f"{to_json(key)}: " if key is not None else "") + (
        to_json(value) if is_flat else _written(value, inner, unit)
    )
    newline = "\r\n" if "\r\n" in text else "\n"
    written = written.replace("\n", newline)
    gap = " " if is_flat else newline + inner
    if not node.members:
        # A comment may be all that is in it.
        return text[: node.end - 1].rstrip(_SPACE) + gap + written + newline + outer + text[node.end - 1 :]
    after = node.members[-1].node.end
    comma = _comma_after(text, after)
    if comma is None:
        text, after = text[:after] + "," + text[after:], after + 1
    else:
        written, after = written + ",", comma + 1
    # What is said at the end of a line is about that line.
    at = after if is_flat else _end_of_remark(text, after)
    return text[:at] + gap + written + text[at:]


def _cut_member(text: str, members: Sequence[Member], index: int) -> str:
    """Without an entry, the blanks before it, and the one comma that has become too many."""
    member = members[index]
    start, end = member.start, member.node.end
    while start > 0 and text[start - 1] in " \t\r\n":
        start -= 1
    comma = _comma_after(text, end)
    if comma is not None:
        end = comma + 1
    elif index > 0:
        before = _comma_after(text, members[index - 1].node.end)
        assert before is not None  # noqa: S101 - entries are separated
        text, start, end = text[:before] + text[before + 1 :], start - 1, end - 1
    rest = text[end:]
    # The only entry leaves an empty pair of brackets, however they stood apart.
    if len(members) == 1 and text[start - 1 : start] in ("{", "["):
        return text[:start] + rest.lstrip(" \t\r\n")
    # A comment before it, to the end of its line, must not swallow what stood behind.
    is_swallowed = "//" in text[text.rfind("\n", 0, start) + 1 : start] and not rest.lstrip(" \t\r").startswith("\n")
    return text[:start] + ("\n" if is_swallowed else "") + rest


def _end_of_remark(text: str, at: int) -> int:
    """The end of the line, if nothing but a comment is left of it."""
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    rest = text[at:end].strip()
    is_remark = rest.startswith("//") or (rest.startswith("/*") and rest.find("*/") == len(rest) - 2)
    return at + len(text[at:end].rstrip()) if is_remark else at


def _comma_after(text: str, at: int) -> int | None:
    reader = _Reader(text)
    reader.at = at
    reader.skip()
    return reader.at if text[reader.at : reader.at + 1] == "," else None


def _indent_at(text: str, at: int) -> str:
    """The blanks at the beginning of the line that a place is on."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """How far the file indents: as its first indented line does."""
    for line in text.splitlines():
        if line[:1] in (" ", "\t") and line.strip():
            return line[: len(line) - len(line.lstrip(" \t"))]
    return "  "


def _written(value: object, indent: str, unit: str) -> str:
    """JSON over several lines; lists of plain words stay on one."""
    inner = indent + unit
    if isinstance(value, dict) and value:
        rows = [f"{inner}{to_json(key)}: {_written(each, inner, unit)}" for key, each in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        rows = [inner + _written(each, inner, unit) for each in value]
        return "[\n" + ",\n".join(rows) + f"\n{indent}]"
    return to_json(value)


class _Reader:
    """Steps through a text, value by value."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def skip(self) -> None:
        """Over blanks and comments."""
        text = self.text
        while self.at < len(text):
            if text[self.at] in _SPACE:
                self.at += 1
            elif text.startswith("//", self.at):
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            elif text.startswith("/*", self.at):
                end = text.find("*/", self.at + 2)
                if end < 0:
                    raise self.wrong()
                self.at = end + 2
            else:
                return

    def value(self) -> Node:
        letter = self.text[self.at : self.at + 1]
        if letter in ("{", "["):
            return self._container(is_object=letter == "{")
        start = self.at
        if letter and letter in _QUOTES:
            self._string()
        else:
            while self.at < len(self.text) and self.text[self.at] not in ",]}/" + _SPACE:
                self.at += 1
        if start == self.at:
            raise self.wrong()
        return Node(kind="scalar", start=start, end=self.at)

    def _container(self, *, is_object: bool) -> Node:
        start = self.at
        members: list[Member] = []
        close = "}" if is_object else "]"
        self.at += 1
        while True:
            self.skip()
            if self.text[self.at : self.at + 1] == close:
                self.at += 1
                return Node(kind="object" if is_object else "array", start=start, end=self.at, members=tuple(members))
            begin, key = self.at, ""
            if is_object:
                key = self._key()
                self.skip()
                self._expect(":")
                self.skip()
            members.append(Member(key=key, start=begin, node=self.value()))
            self.skip()
            if self.text[self.at : self.at + 1] != close:
                self._expect(",")

    def _key(self) -> str:
        """A name in quotes, or, in JSON5, without."""
        start = self.at
        if self.text[start : start + 1] in ('"', "'"):
            return str(_scalar(self._string()))
        while self.text[self.at : self.at + 1].isalnum() or self.text[self.at : self.at + 1] in ("_", "$"):
            self.at += 1
        if start == self.at or self.text[start].isdigit():
            raise self.wrong()
        return self.text[start : self.at]

    def _string(self) -> str:
        start = self.at
        quote = self.text[start]
        self._expect(quote)
        while self.at < len(self.text) and self.text[self.at] not in (quote, "\n"):
            self.at += 2 if self.text[self.at] == "\\" else 1
        self._expect(quote)
        return self.text[start : self.at]

    def _expect(self, letter: str) -> None:
        if self.text[self.at : self.at + 1] != letter:
            raise self.wrong()
        self.at += 1

    def wrong(self) -> UserError:
        line = self.text.count("\n", 0, self.at) + 1
        return UserError(f"it is no JSON at line {line}", "mend the file first; nothing was changed")

"""Changes of JSON with comments and of JSON5 that leave all other bytes unchanged.

The parser returns the positions of values, so that only parts of the text are replaced. Writing the whole file again
would lose comments, order and spacing.
"""

from __future__ import annotations

from outlive.domain.errors import UserError
from outlive.domain.text.sanitize import from_json, to_json
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_SPACE = " \t\r\n\ufeff"
_QUOTES = "\"'"


class Node(Value):
    """A JSON value, with its position in the text."""

    kind: str
    start: int
    end: int
    members: tuple[Member, ...] = ()
    """The entries of an object or an array. In an array, the key of each entry is empty."""


class Member(Value):
    """One entry of an object or an array."""

    key: str
    start: int
    node: Node


def parse(text: str) -> Node:
    """Return the outermost JSON value of a text, with the values in it.

    Raises `UserError` if the text is not JSON.
    """
    reader = _Reader(text)
    reader.skip()
    try:
        node = reader.value()
    except RecursionError as error:
        raise UserError("it is nested too deeply", "correct the file first; nothing was changed") from error
    reader.skip()
    if reader.at < len(text):
        raise reader.wrong()
    return node


def value_of(text: str, node: Node) -> object:
    """Return the Python value of a JSON value with its position."""
    if node.kind == "object":
        return {member.key: value_of(text, member.node) for member in node.members}
    if node.kind == "array":
        return [value_of(text, member.node) for member in node.members]
    return _scalar(text[node.start : node.end])


def _scalar(text: str) -> object:
    """Return the Python value of a string, a number, true, false or null.

    For some forms of JSON5, which Outlive never writes, the value is not exact.
    """
    if text[:1] == "'":
        return text[1:-1]
    try:
        return from_json(text)
    except ValueError:
        return text


def find(root: Node, path: Sequence[str | int]) -> Node | None:
    """Return the value under a path of keys, or None. Of equal keys, the last counts."""
    node: Node | None = root
    for key in path:
        found = _with_key(node, key) if node is not None else []
        node = found[-1].node if found else None
    return node


def _with_key(node: Node, key: str | int) -> list[Member]:
    return [each for index, each in enumerate(node.members) if key == (each.key if isinstance(key, str) else index)]


def find_to_edit(text: str, path: Sequence[str | int]) -> Node | None:
    """Return the value under a path of keys. Raise `UserError` if a key occurs twice.

    Parsers use the last member with a key, but people often see only the first. Changing one of them could lose a
    setting.
    """
    node: Node | None = parse(text)
    for depth, key in enumerate(path, 1):
        found = _with_key(node, key) if node is not None else []
        if len(found) > 1:
            name = ".".join(map(str, path[:depth]))
            raise UserError(
                f"it has the key {name} twice, and only the last one counts", "keep one of them; nothing was changed"
            )
        node = found[0].node if found else None
    return node


def append(text: str, path: Sequence[str], item: object) -> str:
    """Add an item to the array under a path, and create missing objects and arrays."""
    return _insert(text, path, [item], is_array=True)


def set_member(text: str, path: Sequence[str], value: object) -> str:
    """Add a field under a path that does not exist yet."""
    return _insert(text, path, value, is_array=False)


def carry(there: str, text: str, path: Sequence[str]) -> str:
    """Copy fields of an object from another text, if the text lacks them.

    The object is at `path`, and `there` is the other text. Returns the changed `text`.
    """
    old, new = (find(parse(each), path) if each.strip(_SPACE) else None for each in (there, text))
    if old is None or new is None or old.kind != "object":
        return text
    known = [each.key for each in new.members]
    for member in old.members:
        if member.key not in known:
            text = set_member(text, (*path, member.key), value_of(there, member.node))
    return text


def cut(text: str, path: Sequence[str | int], is_ours: Callable[[object], bool]) -> str:
    """Remove Outlive's entries from the object or array under a path."""
    while True:
        node = find_to_edit(text, path)
        members = node.members if node is not None else ()
        index = next((i for i, each in enumerate(members) if is_ours(value_of(text, each.node))), None)
        if index is None:
            return text
        text = _cut_member(text, members, index)


def cut_key(text: str, path: Sequence[str]) -> str:
    """Remove the field under a path. The field must exist."""
    find_to_edit(text, path)
    above = find(parse(text), path[:-1])
    assert above is not None  # noqa: S101 - the caller has checked that the field exists
    return _cut_member(text, above.members, [each.key for each in above.members].index(path[-1]))


def cut_empty(text: str, path: Sequence[str]) -> str:
    """Remove the field under a path if it contains neither entries nor comments."""
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
                raise UserError(f"{'.'.join(path)} has an unexpected value", "check the file; nothing was changed")
            assert isinstance(value, list)  # noqa: S101 - only the function `append` sets `is_array`, and it passes a list
            return _insert_entry(text, node, None, value[0])
        if node.kind != "object":
            raise UserError(
                f"{'.'.join(path[:depth]) or 'the file'} is not a JSON object",
                "correct the file first; nothing was changed",
            )
        for key in reversed(path[depth + 1 :]):
            value = {key: value}
        return _insert_entry(text, node, path[depth], value)
    raise AssertionError(path)


def _insert_entry(text: str, node: Node, key: str | None, value: object) -> str:
    """Insert an entry at the end of an object or array, in the layout of the others."""
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
        # The object or array has no entries, but may contain a comment. Keep the comment.
        return text[: node.end - 1].rstrip(_SPACE) + gap + written + newline + outer + text[node.end - 1 :]
    after = node.members[-1].node.end
    comma = _comma_after(text, after)
    if comma is None:
        text, after = text[:after] + "," + text[after:], after + 1
    else:
        written, after = written + ",", comma + 1
    # A comment behind an entry on the same line belongs to that entry. So insert after the comment.
    at = after if is_flat else _end_of_remark(text, after)
    return text[:at] + gap + written + text[at:]


def _cut_member(text: str, members: Sequence[Member], index: int) -> str:
    """Remove an entry with the blanks before it and one comma."""
    member = members[index]
    start, end = member.start, member.node.end
    while start > 0 and text[start - 1] in " \t\r\n":
        start -= 1
    comma = _comma_after(text, end)
    if comma is not None:
        end = comma + 1
    elif index > 0:
        before = _comma_after(text, members[index - 1].node.end)
        assert before is not None  # noqa: S101 - there is always a comma between two entries
        text, start, end = text[:before] + text[before + 1 :], start - 1, end - 1
    rest = text[end:]
    # If there is no other entry, also remove the blanks between the brackets.
    if len(members) == 1 and text[start - 1 : start] in ("{", "["):
        return text[:start] + rest.lstrip(" \t\r\n")
    # If a `//` comment stands before the entry, the text after the entry must not become a part of this comment.
    is_swallowed = "//" in text[text.rfind("\n", 0, start) + 1 : start] and not rest.lstrip(" \t\r").startswith("\n")
    return text[:start] + ("\n" if is_swallowed else "") + rest


def _end_of_remark(text: str, at: int) -> int:
    """Return the end of the line if a comment follows the position `at`.

    Otherwise return `at`.
    """
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
    """Return the indentation of the line that contains a position."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """Return the indentation of the file's first indented line.

    It is one step of the file's indentation.
    """
    for line in text.splitlines():
        if line[:1] in (" ", "\t") and line.strip():
            return line[: len(line) - len(line.lstrip(" \t"))]
    return "  "


def _written(value: object, indent: str, unit: str) -> str:
    """Return a value as JSON text in several lines.

    A list without objects is written on one line.
    """
    inner = indent + unit
    if isinstance(value, dict) and value:
        rows = [f"{inner}{to_json(key)}: {_written(each, inner, unit)}" for key, each in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        rows = [inner + _written(each, inner, unit) for each in value]
        return "[\n" + ",\n".join(rows) + f"\n{indent}]"
    return to_json(value)


class _Reader:
    """A parser that reads a text from left to right, value by value."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def skip(self) -> None:
        """Skip blanks and comments."""
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
        """Read the key of a field. In JSON5, a key may have no quotes."""
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
        line = self.text[: self.at].rstrip("\n").count("\n") + 1  # a text that ends too early is wrong in its last line
        return UserError(f"it is not valid JSON at line {line}", "correct the file first; nothing was changed")

"""TOML, edited as text: tables of ours at the end of a file, and gone again. Nothing else is touched."""

from __future__ import annotations

import re

from outlive.domain.errors import UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

# What may hide or hold the end of a line; anything else is passed over.
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"""+|' + r"'''.*?'''+|" + r'"(?:\\.|[^"\\\n])*"|' + r"'[^'\n]*'|" + r"#[^\n]*|[\[\]{}\n]",
    re.DOTALL,
)


def parse(text: str) -> dict[str, Any]:
    """The values of a text; `UserError` if it is no TOML."""
    import tomllib  # noqa: PLC0415 - only installing asks

    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"it is no TOML: {error}", "mend the file first; nothing was changed") from error


def header(*names: str) -> str:
    """The line that begins a table."""
    return "[" + ".".join(map(_key, names)) + "]"


def with_table(text: str, head: str, values: Mapping[str, object]) -> str:
    """The text with one more table at its end; `UserError` if what is there does not allow it."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [head, *(f"{_key(name)} = {_written(value)}" for name, value in values.items())]
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    longer = text + gap + newline.join(lines) + newline
    parse(text)
    try:
        parse(longer)
    except UserError as error:
        raise UserError(f"{head} cannot be added to this TOML", "look at the file; nothing was changed") from error
    return longer


def without_tables(text: str, is_ours: Callable[[tuple[str, ...], str], bool]) -> str:
    """The text without the tables that are ours by name and text, and the blank line before each; comments stay."""
    kept: list[str] = []
    for names, lines in tables(text):
        is_inside = is_ours(names, "".join(lines))
        if is_inside and kept and not kept[-1].strip():
            kept.pop()
        kept += [line for line in lines if not is_inside or not line.strip() or line.lstrip().startswith("#")]
    return "".join(kept)


def renamed(text: str, names: Mapping[tuple[str, ...], tuple[str, ...]]) -> str:
    """The text with other names for some of its tables."""
    kept: list[str] = []
    for old, lines in tables(text):
        if old in names:
            lines[0] = lines[0].replace(lines[0].strip(), header(*names[old]), 1)
        kept += lines
    return "".join(kept)


def tables(text: str) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Every table's name and lines, as they stand; what is before the first has no name."""
    names: tuple[str, ...] = ()
    lines: list[str] = []
    for line in _statements(text):
        if line.lstrip().startswith("["):
            yield names, lines
            names, lines = _names(line), []
        lines.append(line)
    yield names, lines


def _statements(text: str) -> Iterator[str]:
    """Lines, except that a value which takes several is not parted."""
    start = depth = 0
    for token in _TOKEN.finditer(text):
        found = token.group()
        depth += (found in ("[", "{")) - (found in ("]", "}"))
        if found == "\n" and depth <= 0:
            yield text[start : token.end()]
            start, depth = token.end(), 0
    if start < len(text):
        yield text[start:]


def _names(line: str) -> tuple[str, ...]:
    """The name of the table that a line begins, part by part, however it is written; empty if it begins none."""
    try:
        found: object = parse(line)
    except UserError:
        return ()
    names: list[str] = []
    while isinstance(found, dict) and found:
        ((name, found),) = found.items()
        names.append(name)
    return tuple(names)


def _key(name: str) -> str:
    is_bare = bool(name) and all(letter.isascii() and (letter.isalnum() or letter in "-_") for letter in name)
    return name if is_bare else _quoted(name)


def _written(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(name)} = {_written(each)}" for name, each in value.items()) + "}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return str(value)  # numbers and dates
    return _quoted(value)


def _quoted(text: str) -> str:
    """A basic string; other than JSON's, it knows no halves of a character."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(letter if letter >= " " else f"\\u{ord(letter):04x}" for letter in escaped) + '"'

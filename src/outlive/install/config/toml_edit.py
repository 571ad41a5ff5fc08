"""Changes of TOML: they add Outlive's tables, remove them, or rename tables."""

from __future__ import annotations

import re

from outlive.domain.errors import UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

# This pattern finds strings, comments, brackets and line breaks. Only they decide where a statement ends, so all other
# text is skipped.
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"""+|' + r"'''.*?'''+|" + r'"(?:\\.|[^"\\\n])*"|' + r"'[^'\n]*'|" + r"#[^\n]*|[\[\]{}\n]",
    re.DOTALL,
)


def parse(text: str) -> dict[str, Any]:
    """Return the values of a text. Raise `UserError` if the text is not TOML."""
    import tomllib  # noqa: PLC0415 - imported here, because only installing and the doctor need it

    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"it is not valid TOML: {error}", "correct the file first; nothing was changed") from error


def header(*names: str) -> str:
    """Return the line that begins a TOML table, such as `[mcp_servers.outlive]`."""
    return "[" + ".".join(map(_key, names)) + "]"


def with_table(text: str, head: str, values: Mapping[str, object]) -> str:
    """Add a table at the end. Raise `UserError` if the result would not be valid TOML."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [head, *(f"{_key(name)} = {_written(value)}" for name, value in values.items())]
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    longer = text + gap + newline.join(lines) + newline
    parse(text)
    try:
        parse(longer)
    except UserError as error:
        raise UserError(f"{head} cannot be added to this TOML", "check the file; nothing was changed") from error
    return longer


def without_tables(text: str, is_ours: Callable[[tuple[str, ...], str], bool]) -> str:
    """Remove the tables that `is_ours` selects, and a blank line before each of them.

    Comments are kept.
    """
    kept: list[str] = []
    for names, lines in tables(text):
        is_inside = is_ours(names, "".join(lines))
        if is_inside and kept and not kept[-1].strip():
            kept.pop()
        kept += [line for line in lines if not is_inside or not line.strip() or line.lstrip().startswith("#")]
    return "".join(kept)


def renamed(text: str, names: Mapping[tuple[str, ...], tuple[str, ...]]) -> str:
    """Return the text with tables renamed. `names` maps each old name to its new name."""
    kept: list[str] = []
    for old, lines in tables(text):
        if old in names:
            lines[0] = lines[0].replace(lines[0].strip(), header(*names[old]), 1)
        kept += lines
    return "".join(kept)


def tables(text: str) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yield each table's name and lines. Lines before the first table have no name."""
    names: tuple[str, ...] = ()
    lines: list[str] = []
    for line in _statements(text):
        if line.lstrip().startswith("["):
            yield names, lines
            names, lines = _names(line), []
        lines.append(line)
    yield names, lines


def _statements(text: str) -> Iterator[str]:
    """Yield the lines of a text. A value that takes several lines is yielded as one."""
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
    """Return the parts of the name in a table's first line.

    Return an empty tuple for any other line.
    """
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
        return str(value)  # numbers and dates look the same in Python and in TOML
    return _quoted(value)


def _quoted(text: str) -> str:
    """Return a string with quotes, as TOML writes it.

    JSON can escape half of a character (a surrogate), but TOML cannot.
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(letter if letter >= " " else f"\\u{ord(letter):04x}" for letter in escaped) + '"'

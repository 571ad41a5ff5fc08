"""TOML, edited as text: tables of ours at the end of a file, and gone again. Nothing else is touched."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def header(*names: str) -> str:
    """The line that begins a table."""
    return "[" + ".".join(name if _is_bare(name) else _quoted(name) for name in names) + "]"


def with_table(text: str, head: str, values: Mapping[str, object]) -> str:
    """The text with one more table at its end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [head, *(f"{name} = {_written(value)}" for name, value in values.items())]
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    return text + gap + newline.join(lines) + newline


def without_tables(text: str, is_ours: Callable[[str], bool]) -> str:
    """The text without the tables whose first line is ours, and the blank line before each; comments stay."""
    kept: list[str] = []
    is_inside = False
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        if bare.startswith("["):
            is_inside = is_ours(bare)
            if is_inside and kept and not kept[-1].strip():
                kept.pop()
        if not is_inside or not bare or bare.startswith("#"):
            kept.append(line)
    return "".join(kept)


def _is_bare(name: str) -> bool:
    return bool(name) and all(letter.isascii() and (letter.isalnum() or letter in "-_") for letter in name)


def _written(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    return _quoted(str(value))


def _quoted(text: str) -> str:
    """A basic string; other than JSON's, it knows no halves of a character."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(letter if letter >= " " else f"\\u{ord(letter):04x}" for letter in escaped) + '"'

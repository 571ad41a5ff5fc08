"""The search for the line of a key in a TOML file.

The parser `tomllib` does not report this line.
"""

from __future__ import annotations

import tomllib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_CHARACTERS = 64 << 10
_MOST_CANDIDATES, _LONGEST_VALUE = 40, 60


def line_of(text: str, where: Sequence[str]) -> int | None:
    """Return the number of the line in which a key begins, or None if it is unclear.

    The lines up to and including this line contain the key. The lines before it do not.
    """
    if len(text) > _MOST_CHARACTERS or not where:
        return None
    lines = text.split("\n")
    first: int | None = 0
    for depth in range(1, len(where) + 1):
        # A key is never before the beginning of its table.
        if first is not None:
            first = _first_line(lines, where[:depth], first)
    return None if first is None else first + 1


def _first_line(lines: Sequence[str], where: Sequence[str], start: int) -> int | None:
    """Return the index of the line in which a key begins, or None if there is none.

    The search begins at the line with the index `start`.
    """
    candidates = [at for at in range(start, len(lines)) if where[-1] in lines[at]]
    for at in candidates[:_MOST_CANDIDATES]:
        if _has_key(lines[:at], where) is not False:
            continue
        for end in range(at + 1, min(at + _LONGEST_VALUE, len(lines)) + 1):
            if (found := _has_key(lines[:end], where)) is not None:
                if found:
                    return at
                break
    return None


def _has_key(lines: Sequence[str], where: Sequence[str]) -> bool | None:
    """Return whether some lines contain a key, or None if they are not valid TOML."""
    try:
        found: object = tomllib.loads("\n".join(lines) + "\n")
    except (ValueError, RecursionError):
        return None
    for name in where:
        if not isinstance(found, dict) or name not in found:
            return False
        found = found[name]
    return True

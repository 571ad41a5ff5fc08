"""Readers of fields in the JSON lines that clients print.

A field of the wrong type counts as missing.
"""

from __future__ import annotations

from outlive.domain.text.sanitize import from_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DEEPEST = 200
_NO_BRACKETS = bytes(sorted(set(range(256)) - set(b"{}[]")))
# A larger number in a client's output is not accepted as a count, because it may not fit into the ledger.
_LARGEST = 1 << 40
_SESSION_SIGNS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:")


def parse_line(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a line. Return None if the line is not a JSON object.

    Also return None if the object is nested too deeply, because converting such an object back to JSON could fail.
    """
    text = line.strip()
    if not text.startswith(b"{") or not text.endswith(b"}") or _is_too_deep(text):
        return None
    try:
        found = from_json(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _is_too_deep(text: bytes) -> bool:
    """Return whether JSON is nested more deeply than the output of any client."""
    if text.count(b"{") + text.count(b"[") <= _DEEPEST:
        return False
    # Brackets inside strings do not count. Splitting the text at each quote that has no backslash before it gives parts
    # that are alternately outside and inside of strings. So only every second part is counted.
    outside = b"".join(text.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    depth = 0
    for sign in outside.translate(None, _NO_BRACKETS):
        depth += 1 if sign in b"{[" else -1
        if depth > _DEEPEST:
            return True
    return False


def find(document: object, *path: str) -> Any:
    """Return a nested field of a JSON object, or None if it does not exist."""
    for name in path:
        if not isinstance(document, dict):
            return None
        document = document.get(name)
    return document


def text(document: object, *path: str) -> str:
    """Return a nested field if it is a string. Otherwise return an empty string.

    Invalid Unicode (lone surrogates) is replaced, because it cannot be stored.
    """
    found = find(document, *path)
    if not isinstance(found, str):
        return ""
    return found if found.isascii() else found.encode("utf-8", "replace").decode()


def session(document: object, *path: str) -> str | None:
    """Return a nested field if it can be the id of a session. Otherwise return None.

    The id becomes a command-line argument when the session is resumed, so it must not look like an option.
    """
    found = text(document, *path)
    is_id = 0 < len(found) <= 200 and found[0] not in "-." and _SESSION_SIGNS.issuperset(found)
    return found if is_id else None


def whole(document: object, *path: str) -> int | None:
    """Return a nested field if it is a whole number that can be a count.

    Otherwise return None.
    """
    found = find(document, *path)
    is_count = isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= _LARGEST
    return found if is_count else None


def number(document: object, *path: str) -> float | None:
    """Return a nested field if it is a number that can be an amount of money.

    Otherwise return None.
    """
    found = find(document, *path)
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return None
    return float(found) if 0 <= found <= _LARGEST else None


def moment(document: object, *path: str) -> float | None:
    """Return a nested field that contains a time, as seconds since 1970.

    Return None if the field is not a time.
    """
    from outlive.domain.errors import UserError  # noqa: PLC0415 - only clients that print times need this import
    from outlive.domain.parse_time import moment_of  # noqa: PLC0415

    found = find(document, *path)
    if found is None:
        return None
    try:
        return moment_of(found).timestamp()
    except (UserError, OverflowError, ValueError, RecursionError):
        return None


def items(document: object, *path: str) -> list[Any]:
    """Return a nested field if it is a list. Otherwise return an empty list."""
    found = find(document, *path)
    return found if isinstance(found, list) else []


def questions(document: object) -> str:
    """Return the questions in the input of a client's question tool, each as a line."""
    return "\n".join(filter(None, (text(each, "question") for each in items(document, "questions"))))

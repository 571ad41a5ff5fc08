"""Functions that read fields of hook input. A field of a wrong type is ignored."""

from __future__ import annotations

from outlive.domain.text.sanitize import is_encodable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def text(payload: Mapping[str, Any], name: str) -> str | None:
    """Return the string in a field, or None if the field is missing or empty."""
    found = payload.get(name)
    return found if isinstance(found, str) and found else None


def path(payload: Mapping[str, Any], name: str) -> str | None:
    """Return the path in a field, or None if the field contains no valid path."""
    found = text(payload, name)
    return found if found is not None and "\0" not in found and is_encodable(found) else None


def texts(payload: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return the strings in a list, without empty strings.

    The result is empty if the value is not a list.
    """
    found = payload.get(name)
    return tuple(each for each in found if isinstance(each, str) and each) if isinstance(found, list) else ()

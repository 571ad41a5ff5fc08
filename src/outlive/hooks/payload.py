"""Reading what a client says: a field is what it should be, or as good as not there."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def text(payload: Mapping[str, Any], name: str) -> str | None:
    """A text with something in it."""
    found = payload.get(name)
    return found if isinstance(found, str) and found else None


def texts(payload: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Every text of a list."""
    found = payload.get(name)
    return tuple(each for each in found if isinstance(each, str) and each) if isinstance(found, list) else ()

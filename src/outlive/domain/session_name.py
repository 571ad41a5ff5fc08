"""What may be a session's name: apart from all else about sessions, because every hook asks."""

from __future__ import annotations

from outlive.domain.errors import UserError
from outlive.domain.text import is_encodable

_LONGEST_NAME = 500


def check_name(name: str) -> None:
    """Refuse what cannot be a session's name."""
    if not 0 < len(name) <= _LONGEST_NAME or "\0" in name or not is_encodable(name):
        raise UserError("the session is not usable", f"1 to {_LONGEST_NAME} characters, no NUL byte")

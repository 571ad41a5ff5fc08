"""The rules for a session's name.

This module is small, because every hook has to load it fast.
"""

from __future__ import annotations

from outlive.domain.errors import UserError
from outlive.domain.text.sanitize import is_encodable

_LONGEST_NAME = 500


def check_name(name: str) -> None:
    """Raise `UserError` if a string cannot be the name of a session."""
    if not 0 < len(name) <= _LONGEST_NAME or "\0" in name or not is_encodable(name):
        raise UserError(
            "the name of the session is not valid", f"give 1 to {_LONGEST_NAME} characters without a NUL byte"
        )

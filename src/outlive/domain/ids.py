"""Ids of tasks and lineages: short, safe in a path and unlikely to collide.

A lineage is a session with all sessions that continue it.
"""

from __future__ import annotations

from outlive.domain.errors import UserError

# There are no vowels, so that no id is a word. 0, 1 and l are left out, so that an id can be read aloud.
_ALPHABET = "23456789bcdfghjkmnpqrstvwxyz"
_ALLOWED = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
LENGTH = 8
SHORTEST, LONGEST = 6, 40


def task_id(random: bytes) -> str:
    """Return a task id made from eight random bytes."""
    return "t" + letters(random, LENGTH - 1)


def lineage_id(random: bytes) -> str:
    """Return an id for a lineage (sessions that continue each other).

    The id is made from eight random bytes.
    """
    return "l" + letters(random, LENGTH - 1)


def uuid_of(random: bytes) -> str:
    """Return a UUID (version 4) made from sixteen random bytes."""
    number = int.from_bytes(random, "big") & ~(0xF << 76) & ~(0x3 << 62) | (0x4 << 76) | (0x2 << 62)
    digits = f"{number:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def letters(random: bytes, length: int) -> str:
    """Return `length` letters and digits made from random bytes."""
    number = int.from_bytes(random, "big")
    digits = []
    for _ in range(length):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(digits)


def check_prefix(text: str) -> str:
    """Return the beginning of a task id that a user gave.

    Raises `UserError` if no id can begin with this text. The returned text is safe in a path.
    """
    if not text or len(text) > LONGEST or not _ALLOWED.issuperset(text):
        raise UserError(
            f"{text[:60]!r} is not a task id",
            "an id has letters and digits, as `outlive list` prints it; a unique prefix is enough",
        )
    return text


def is_id(text: str) -> bool:
    """Return whether a string has the form of a task id, so that it may name a bundle."""
    return SHORTEST <= len(text) <= LONGEST and _ALLOWED.issuperset(text)

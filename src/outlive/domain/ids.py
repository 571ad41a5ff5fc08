"""Ids of tasks and lineages: short to type, safe in a path, unguessable enough not to collide."""

from __future__ import annotations

from outlive.domain.errors import UserError

# No vowels but the leading t, so that no id spells a word; no 0/1/l, so that it can be read out.
_ALPHABET = "23456789bcdfghjkmnpqrstvwxyz"
_ALLOWED = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
LENGTH = 8
SHORTEST, LONGEST = 6, 40


def task_id(random: bytes) -> str:
    """An id of a task from eight random bytes."""
    return "t" + letters(random, LENGTH - 1)


def lineage_id(random: bytes) -> str:
    """An id of a lineage from eight random bytes."""
    return "l" + letters(random, LENGTH - 1)


def letters(random: bytes, length: int) -> str:
    """So many letters and digits from random bytes; each takes almost five bits of them."""
    number = int.from_bytes(random, "big")
    digits = []
    for _ in range(length):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(digits)


def check_prefix(text: str) -> str:
    """The text as the beginning of an id, or a clear refusal: ids become paths."""
    if not text or len(text) > LONGEST or not _ALLOWED.issuperset(text):
        raise UserError(
            f"{text[:60]!r} is not a task id",
            "an id is letters and digits, as `outlive list` prints it; any unique prefix will do",
        )
    return text


def is_id(text: str) -> bool:
    """Whether the text may name a bundle."""
    return SHORTEST <= len(text) <= LONGEST and _ALLOWED.issuperset(text)

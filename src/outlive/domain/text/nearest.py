"""The hint for a misspelled name."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word most similar to `word`, or None if no word is similar."""
    from difflib import get_close_matches  # noqa: PLC0415 - only an error message needs this import

    return next(iter(get_close_matches(word, list(known), 1)), None)


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return the hint for an unknown word.

    The hint names a known word that is similar. If no word is similar, the function returns `otherwise`.
    """
    close = nearest(word, known)
    return otherwise if close is None else f"did you mean {close}?"

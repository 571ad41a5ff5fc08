"""The conversion of times in the formats of different clients to `datetime`.

A client sends a number, an ISO text, or an object that contains a number or an ISO text. A number counts seconds,
milliseconds, microseconds or nanoseconds since 1970.
"""

from __future__ import annotations

from outlive.domain.errors import UserError
from outlive.domain.text.sanitize import from_json
from outlive.domain.timestamps import UTC, datetime, from_micros

# The size of a number shows its unit: for times of this century, the ranges of the units do not overlap.
_UNITS = ((1e11, 1_000_000.0), (1e14, 1_000.0), (1e17, 1.0), (1e20, 0.001))
_FIRST_YEAR, _LAST_YEAR = 1900, 9000
_HOLDERS = ("created", "created_at", "timestamp", "time", "at")


def moment_of(given: object) -> datetime:
    """Return a client's value as a time, or raise `UserError` if it is not a time."""
    found = _moment(given)
    if found is None:
        raise UserError(
            f"{str(given)[:60]!r} is not a time",
            "give seconds or milliseconds since 1970, or a text such as 2026-06-21T13:58:02Z",
        )
    return found


def _moment(given: object) -> datetime | None:
    if isinstance(given, dict):
        return next((_moment(given[name]) for name in _HOLDERS if name in given), None)
    if isinstance(given, str):
        text = given.strip()
        if text.startswith("{"):
            return _from_json(text)
        try:
            given = float(text)
        except ValueError:
            return _from_iso(text)
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        return None
    return _from_number(given)


def _from_number(number: float) -> datetime | None:
    for limit, micros in _UNITS:
        if 0 <= number < limit:
            return from_micros(round(number * micros))
    return None


def _from_json(text: str) -> datetime | None:
    try:
        found = from_json(text)
    except ValueError:
        return None
    return _moment(found) if isinstance(found, dict) else None


def _from_iso(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    # A time without a zone counts as UTC, because machines that log without a zone log in UTC.
    found = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return found if _FIRST_YEAR <= found.year <= _LAST_YEAR else None

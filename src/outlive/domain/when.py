"""Points in time, as the ledger stores them (microseconds) and as people and programs read them.

`datetime` and `timedelta` are taken from here: the public module first runs a whole second
implementation in Python and then throws it away, which every launch would pay for.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import UTC, datetime, timedelta
else:
    from _datetime import datetime, timedelta, timezone

    UTC = timezone.utc

__all__ = ["UTC", "datetime", "from_micros", "iso", "timedelta", "to_micros"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_micros(moment: datetime) -> int:
    """Microseconds since 1970: numbers compare, texts only seem to."""
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """The aware datetime of a stored number."""
    return _EPOCH + micros * _MICROSECOND


def iso(moment: datetime | None) -> str | None:
    """`2026-06-21T13:58:02.113Z`."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

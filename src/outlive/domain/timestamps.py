"""The conversion of times between `datetime`, the ledger's numbers and ISO text.

Other modules import `datetime` and `timedelta` from here, because importing the module `datetime` of the
standard library would slow down every launch.
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
    """Return a time as the number of microseconds since 1970.

    These numbers sort by time. ISO texts may not sort by time.
    """
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Return the time for a stored number, with the time zone UTC."""
    return _EPOCH + micros * _MICROSECOND


def iso(moment: datetime | None) -> str | None:
    """Return a time as `2026-06-21T13:58:02.113Z`, and None for None."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

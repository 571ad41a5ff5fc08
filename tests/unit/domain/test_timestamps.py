"""Times as numbers in the ledger, and in the one form in which they are shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlive.domain.timestamps import from_micros, iso, to_micros

some = settings(max_examples=20, deadline=None)
zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(datetime(1902, 1, 1), datetime(9000, 1, 1), timezones=zones)  # noqa: DTZ001 - hypothesis needs bounds without a zone


@some
@given(moments)
def test_a_moment_is_stored_without_loss(moment: datetime) -> None:
    """A time of any time zone is stored and read back without loss, to the microsecond."""
    again = from_micros(to_micros(moment))
    assert again == moment
    assert again.tzinfo is UTC


@some
@given(moments, moments)
def test_stored_numbers_compare_as_the_moments_do(one: datetime, other: datetime) -> None:
    """The stored numbers have the same order as the times. The ledger sorts by these numbers."""
    assert (to_micros(one) < to_micros(other)) == (one < other)


@some
@given(moments)
def test_the_shown_form_is_read_back_to_the_millisecond(moment: datetime) -> None:
    """A shown time is read back to the millisecond. The form is ISO 8601 in UTC."""
    shown = iso(moment)
    assert shown is not None
    assert timedelta(0) <= moment - datetime.fromisoformat(shown) < timedelta(milliseconds=1)
    assert len(shown) == len("2026-06-21T13:58:02.113Z")


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 6, 21, 13, 58, 2, 113_999, tzinfo=UTC), "2026-06-21T13:58:02.113Z"),
        (
            datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=2))),
            "2025-12-31T23:00:00.000Z",
        ),
        (None, None),
    ],
)
def test_iso_always_shows_milliseconds_and_a_z(moment: datetime | None, text: str | None) -> None:
    """`iso` shows a time with milliseconds and a final `Z`. For None it returns None."""
    assert iso(moment) == text


def test_to_micros_counts_from_1970() -> None:
    """`to_micros` counts microseconds from 1970, and returns a negative number for an earlier time."""
    assert to_micros(datetime(1970, 1, 1, tzinfo=UTC)) == 0
    assert from_micros(-1) == datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)

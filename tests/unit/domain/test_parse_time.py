"""Reading times in the forms in which clients write them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlive.domain.errors import UserError
from outlive.domain.parse_time import moment_of
from outlive.domain.timestamps import UTC, datetime, iso, to_micros

if TYPE_CHECKING:
    from collections.abc import Callable

NOON = datetime(2026, 6, 21, 12, 0, 0, 500_000, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        1782043200.5,
        1782043200500,
        1782043200500000,
        1782043200500000000,
        "1782043200.5",
        " 1782043200500 ",
        "2026-06-21T12:00:00.500Z",
        "2026-06-21T14:00:00.500+02:00",
        "2026-06-21 12:00:00.5",
        {"created": 1782043200500},
        {"time": {"created": "2026-06-21T12:00:00.500Z"}},
        {"created_at": "1782043200.5", "other": 1},
    ],
)
def test_moment_of_reads_every_form_of_a_time(text: object) -> None:
    """A time gives the same result as a number in seconds to nanoseconds, as ISO text, or in an object."""
    assert moment_of(text) == NOON


@pytest.mark.parametrize(
    "text", ["", "soon", -1, 1e30, True, None, [], {}, {"created": "x"}, "nan", "inf", float("nan")]
)
def test_moment_of_refuses_values_that_are_no_time(text: object) -> None:
    """`moment_of` raises `UserError` for a value that is no time."""
    with pytest.raises(UserError):
        moment_of(text)


@given(
    st.datetimes(datetime(1980, 1, 1), datetime(2200, 1, 1)), st.datetimes(datetime(1980, 1, 1), datetime(2200, 1, 1))
)
def test_moments_have_the_right_order_in_all_forms(one: datetime, other: datetime) -> None:
    """Times in different forms are sorted by time, even where their texts would be sorted the other way."""
    first, second = (each.replace(tzinfo=UTC, microsecond=0) for each in (one, other))
    forms: list[Callable[[datetime], object]] = [
        lambda moment: to_micros(moment) // 1_000_000,
        lambda moment: to_micros(moment) // 1000,
        iso,
    ]
    for form in forms:
        for other_form in forms:
            assert (moment_of(form(first)) < moment_of(other_form(second))) == (first < second)
    assert moment_of(iso(first + timedelta(milliseconds=1))) > first

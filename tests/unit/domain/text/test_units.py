"""Durations and sizes are read as people write them, or are refused."""

from __future__ import annotations

import contextlib
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlive.domain.errors import UserError
from outlive.domain.text.units import parse_duration, parse_size, show_duration, show_size

some = settings(max_examples=20, deadline=None)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("15m", 900),
        ("2h", 7200),
        ("7d", 604_800),
        ("1w", 604_800),
        ("500ms", 0.5),
        ("1h30m", 5400),
        ("1.5h", 5400),
        (" 10s ", 10),
        ("10S", 10),
        ("0s", 0),
        ("3650d", 3650 * 86400),
    ],
)
def test_a_duration_is_read_as_people_write_it(text: str, seconds: float) -> None:
    """A duration may have several units and decimal fractions."""
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "90", "s", "-5s", "+5s", "1e3s", "5 m", "5m 3", "1..5s", ".s", "5x", "5s\0"),
        *("\u0663s", "3651d", "9" * 400 + "s", "nans", "infs", "5,5s"),
    ],
)
def test_a_bad_duration_is_refused(text: str) -> None:
    """A duration that is not valid is refused with a hint. Examples are infinity and a number without a unit."""
    with pytest.raises(UserError) as refusal:
        parse_duration(text)
    assert refusal.value.hint


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 0),
        ("123", 123),
        ("123B", 123),
        ("500K", 500 << 10),
        ("64M", 64 << 20),
        ("64mb", 64 << 20),
        ("64MiB", 64 << 20),
        ("2 G", 2 << 30),
        ("1.5K", 1536),
        ("1T", 1 << 40),
    ],
)
def test_a_size_is_read_as_people_write_it(text: str, count: int) -> None:
    """A size is read in any of these spellings. Each unit is a power of 1024."""
    assert parse_size(text) == count


@pytest.mark.parametrize("text", ["", "B", "M", "-1K", "1.2.3M", "5X", "5KK", "0x10", "1e6", "\u0663K"])
def test_a_bad_size_is_refused(text: str) -> None:
    """A size that is not valid is refused, with a hint that shows how to write one."""
    with pytest.raises(UserError) as refusal:
        parse_size(text)
    assert refusal.value.hint


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0ms"),
        (0.25, "250ms"),
        (4.2, "4.2s"),
        (41, "41s"),
        (59.7, "1m"),
        (200, "3m 20s"),
        (3600, "1h"),
        (3660, "1h 1m"),
        (187_200, "2d 4h"),
        (-41, "-41s"),
    ],
)
def test_a_duration_is_shown_in_its_two_largest_units(seconds: float, text: str) -> None:
    """A duration is shown in its two largest units, so that it fits into a column."""
    assert show_duration(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0B"), (1023, "1023B"), (1024, "1K"), (18_637, "18.2K"), (9 << 20, "9M"), (3 << 30, "3G")],
)
def test_a_size_is_shown_with_one_decimal_at_most(count: int, text: str) -> None:
    """A size is shown with one decimal at most, in the unit in which the number is below 1024."""
    assert show_size(count) == text


@some
@given(st.integers(0, 3600 * 24 * 3650))
def test_a_shown_duration_is_read_back(seconds: int) -> None:
    """If a shown duration is read back, it differs by less than the smaller unit that was shown."""
    span = timedelta(seconds=seconds)
    again = parse_duration(show_duration(span).replace(" ", ""))
    unit = timedelta(hours=1) if seconds >= 86400 else timedelta(minutes=1) if seconds >= 3600 else None
    assert span - (unit or timedelta(0)) <= again <= span


@some
@given(st.integers(0, 1 << 50))
def test_a_shown_size_is_read_back(count: int) -> None:
    """If a shown size is read back, it is exact to the decimal that was shown."""
    assert parse_size(show_size(count)) == pytest.approx(count, rel=0.05, abs=1)


@some
@given(st.text(max_size=12))
def test_parsing_any_text_raises_nothing_but_user_error(text: str) -> None:
    """Any text is read as a duration or size, or raises `UserError`, and no other error."""
    for parse in (parse_duration, parse_size):
        with contextlib.suppress(UserError):
            assert parse(text) is not None

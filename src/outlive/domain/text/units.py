"""Durations and sizes as people write them: `90s`, `1h30m`, `500ms`, `64M`."""

from __future__ import annotations

from outlive.domain.errors import UserError
from outlive.domain.timestamps import timedelta

_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_BYTES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_LONGEST = timedelta(days=3650)
_LARGEST = 1 << 50


def parse_duration(text: str) -> timedelta:
    """Return the duration that a text states, or raise `UserError`."""
    total, rest = 0.0, text.strip().lower()
    while rest:
        digits = _leading(rest, "0123456789.")
        unit = _leading(rest[len(digits) :], "abcdefghijklmnopqrstuvwxyz")
        if unit not in _SECONDS or not _is_number(digits):
            raise _bad_duration(text)
        total += float(digits) * _SECONDS[unit]
        rest = rest[len(digits) + len(unit) :]
    if not text.strip():
        raise _bad_duration(text)
    if total > _LONGEST.total_seconds():
        raise UserError(f"{text!r} is longer than ten years", "for no limit, leave the option out")
    return timedelta(seconds=total)


def parse_size(text: str) -> int:
    """Return the number of bytes that a text states, or raise `UserError`."""
    given = text.strip().upper().removesuffix("IB").removesuffix("B")
    digits = _leading(given, "0123456789.")
    unit = given[len(digits) :].strip()
    if not _is_number(digits) or unit not in _BYTES:
        raise UserError(f"{text!r} is not a size", "write a size such as 500K, 64M or 2G")
    size = float(digits) * _BYTES[unit]
    if size > _LARGEST:
        raise UserError(f"the size {text[:40]!r} is too large", "give at most 1024T, for example 500K, 64M or 2G")
    return int(size)


def show_duration(span: timedelta) -> str:
    """Return the two largest units of a duration: `41s`, `3m 20s`, `2d 4h`."""
    seconds = span.total_seconds()
    if seconds < 0:
        return "-" + show_duration(-span)
    if seconds < 0.9995:
        return f"{round(seconds * 1000)}ms"
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    for unit, size, below, smaller in (
        ("d", 86400, "h", 3600),
        ("h", 3600, "m", 60),
        ("m", 60, "s", 1),
    ):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size}{unit}" + (f" {rest}{below}" if rest else "")
    return f"{whole}s"


def show_size(count: int) -> str:
    """Return a size with at most one decimal: `18.2K`, `9M`."""
    size = float(count)
    for unit in ("B", "K", "M", "G"):
        if size < (1024 if unit == "B" else 1023.95):
            return f"{size:.1f}".removesuffix(".0") + unit
        size /= 1024
    return f"{size:.1f}".removesuffix(".0") + "T"


def _leading(text: str, allowed: str) -> str:
    end = 0
    while end < len(text) and text[end] in allowed:
        end += 1
    return text[:end]


def _is_number(digits: str) -> bool:
    return digits.count(".") <= 1 and digits.replace(".", "").isdigit()


def _bad_duration(text: str) -> UserError:
    return UserError(f"{text!r} is not a duration", "write a duration such as 500ms, 90s, 15m, 2h or 7d")


def show_files(count: int) -> str:
    """Return a phrase for a number of files: `1 file`, `20,000 files`."""
    return f"{count:,} file{'' if count == 1 else 's'}"


def them(count: int) -> str:
    """Return the pronoun for a number of files: `it` or `them`."""
    return "it" if count == 1 else "them"

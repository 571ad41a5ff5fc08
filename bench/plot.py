"""Plots in SVG: a dot for each median, and a line from it to the 95th percentile.

The axis is logarithmic. The plots are few, so a drawing library is not worth a dependency.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_COLOURS = {"ours": "#1a7f4b", "durable": "#b35900", "other": "#5b6b7b", "floor": "#a0a8b0"}
_LEGEND = {"ours": "Outlive", "durable": "durable record", "other": "no durable record", "floor": "floor"}
_LEFT, _WIDTH, _TOP, _STEP, _RIGHT = 240, 520, 64, 24, 90


class Row(NamedTuple):
    """One line of a plot: a name and its measured times."""

    name: str
    median: float
    p95: float
    shade: str


def draw(title: str, rows: Sequence[Row]) -> str:
    """Return a plot as SVG text, with the given rows from top to bottom."""
    low = math.floor(math.log10(min(row.median for row in rows)))
    high = math.ceil(math.log10(max(max(row.p95, row.median) for row in rows)))
    bottom = _TOP + _STEP * len(rows)

    def x(ms: float) -> float:
        return _LEFT + _WIDTH * (math.log10(ms) - low) / (high - low)

    parts = [_text(12, 22, title, size=15, weight="bold"), *_legend()]
    for power in range(low, high + 1):
        parts.append(_line(x(10.0**power), _TOP - 8, x(10.0**power), bottom, "#e2e6ea"))
        parts.append(_text(x(10.0**power), bottom + 16, f"{10.0**power:g} ms", anchor="middle", colour="#5b6b7b"))
    for number, row in enumerate(rows):
        y = _TOP + _STEP * number + _STEP / 2 - 4
        colour = _COLOURS[row.shade]
        weight = "bold" if row.shade == "ours" else "normal"
        parts.append(_text(_LEFT - 12, y + 4, row.name, anchor="end", weight=weight))
        parts.append(_line(x(row.median), y, x(max(row.p95, row.median)), y, colour, width=3))
        parts.append(f'<circle cx="{x(row.median):.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>')
        parts.append(_text(x(max(row.p95, row.median)) + 10, y + 4, f"{row.median:.1f}", colour=colour))
    size = f'width="{_LEFT + _WIDTH + _RIGHT}" height="{bottom + 28}"'
    style = 'font-family="system-ui, sans-serif" font-size="12"'
    body = "\n".join(parts)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n<rect {size} fill="white"/>\n{body}\n</svg>\n'


def _legend() -> list[str]:
    parts, at = [], _LEFT
    for shade, words in _LEGEND.items():
        parts.append(f'<circle cx="{at}" cy="40" r="5" fill="{_COLOURS[shade]}"/>')
        parts.append(_text(at + 10, 44, words, colour="#5b6b7b"))
        at += 30 + 7 * len(words)
    parts.append(_text(at, 44, "dot: median, line: to the p95", colour="#5b6b7b"))
    return parts


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, *, width: int = 1) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width}"/>'


def _text(
    x: float,
    y: float,
    words: str,
    *,
    anchor: str = "start",
    weight: str = "normal",
    size: int = 12,
    colour: str = "#1f2933",
) -> str:
    look = f'text-anchor="{anchor}" font-weight="{weight}" font-size="{size}" fill="{colour}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {look}>{escape(words)}</text>'

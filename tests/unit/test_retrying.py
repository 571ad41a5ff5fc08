"""Trying again: what for, and when."""

from __future__ import annotations

from datetime import timedelta

import pytest

from outlive.domain.evidence import Verdict
from outlive.domain.retrying import is_worth_retrying, retry_delay


@pytest.mark.parametrize(
    ("state", "reason", "worth"),
    [
        ("failed", None, True),
        ("timed_out", "timeout", True),
        ("timed_out", "idle_timeout", True),
        ("timed_out", "queue_timeout", False),
        ("failed", "not_started", False),
        ("failed", "output_limit", False),
        ("failed", "cancel_incomplete", False),
        ("cancelled", "requested", False),
        ("lost", "keeper_killed", False),
        ("succeeded", None, False),
    ],
)
def test_only_what_may_go_better_is_tried_again(state: str, reason: str | None, *, worth: bool) -> None:
    """A failure of the command's own, or a limit of its own; nothing that somebody wanted."""
    verdict = Verdict(state=state, exit_code=None, signal=None, reason=reason, detail=None)  # type: ignore[arg-type]
    assert is_worth_retrying(verdict) == worth


def test_delays_double_up_to_five_minutes() -> None:
    """And never overflow."""
    delays = [retry_delay(before) for before in (0, 1, 2, 3, 8, 9, 100)]
    assert delays == [timedelta(seconds=s) for s in (1, 2, 4, 8, 256, 300, 300)]

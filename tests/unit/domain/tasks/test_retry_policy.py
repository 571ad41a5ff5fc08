"""Automatic retries: after which endings a task is tried again, and after which delay."""

from __future__ import annotations

from datetime import timedelta

import pytest

from outlive.domain.tasks.evidence import Verdict
from outlive.domain.tasks.retry_policy import is_worth_retrying, retry_delay


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
def test_is_worth_retrying_only_for_failures_and_time_limits_of_the_command(
    state: str, reason: str | None, *, worth: bool
) -> None:
    """A task is tried again after a failure or a time limit, and not after a cancel, for example."""
    verdict = Verdict(state=state, exit_code=None, signal=None, reason=reason, detail=None)  # type: ignore[arg-type]
    assert is_worth_retrying(verdict) == worth


def test_retry_delay_doubles_up_to_five_minutes() -> None:
    """The delay doubles with each attempt, up to five minutes. A very large number of attempts raises no error."""
    delays = [retry_delay(before) for before in (0, 1, 2, 3, 8, 9, 100)]
    assert delays == [timedelta(seconds=s) for s in (1, 2, 4, 8, 256, 300, 300)]

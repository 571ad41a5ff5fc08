"""Trying again by itself: which endings are worth it, and after how long."""

from __future__ import annotations

from outlive.domain.when import timedelta

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.domain.evidence import Verdict

_FIRST_DELAY = timedelta(seconds=1)
_LONGEST_DELAY = timedelta(minutes=5)
_WORTH_IT = (None, "timeout", "idle_timeout")


def is_worth_retrying(verdict: Verdict) -> bool:
    """Whether the command itself failed, or took too long.

    Not what somebody ended on purpose, and not a program or a directory that is not there.
    """
    return verdict.state in ("failed", "timed_out") and verdict.reason in _WORTH_IT


def retry_delay(retries_before: int) -> timedelta:
    """How long to wait before the next attempt: twice as long each time, up to five minutes."""
    delay: timedelta = _FIRST_DELAY * (1 << min(retries_before, 16))
    return min(delay, _LONGEST_DELAY)

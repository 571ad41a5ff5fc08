"""The policy of automatic retries: which endings are retried, and the delay."""

from __future__ import annotations

from outlive.domain.timestamps import timedelta

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.domain.tasks.evidence import Verdict

_FIRST_DELAY = timedelta(seconds=1)
_LONGEST_DELAY = timedelta(minutes=5)
_WORTH_IT = (None, "timeout", "idle_timeout")


def is_worth_retrying(verdict: Verdict) -> bool:
    """Return whether an attempt may be retried: the command failed or took too long.

    A cancelled command, or a missing program or directory, is not retried.
    """
    return verdict.state in ("failed", "timed_out") and verdict.reason in _WORTH_IT


def retry_delay(retries_before: int) -> timedelta:
    """Return the delay before the next attempt: a second, doubled up to five minutes."""
    delay: timedelta = _FIRST_DELAY * (1 << min(retries_before, 16))
    return min(delay, _LONGEST_DELAY)

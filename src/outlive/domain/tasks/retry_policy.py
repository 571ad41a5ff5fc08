"""The policy of automatic retries: which attempts are retried, and the delay."""

from __future__ import annotations

from outlive.domain.timestamps import timedelta

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.domain.agents.result import AgentResult
    from outlive.domain.tasks.evidence import Verdict

_FIRST_DELAY = timedelta(seconds=1)
_LONGEST_DELAY = timedelta(minutes=5)
_WORTH_IT = (None, "timeout", "idle_timeout")


def is_worth_retrying(verdict: Verdict, agent: AgentResult | None = None, retries: int = 0) -> bool:
    """Return whether an attempt may be retried automatically.

    A command is retried if it failed or took too long. It is not retried if it was cancelled, or if its program or
    directory is missing.

    An agent is retried, if possible with another model, if its model was unavailable. If the task has `retries`, an
    agent is retried as well if its client failed or took too long. An agent is not retried if its request was refused,
    a limit was reached or the agent asked a question, because another model would not help.
    """
    if agent is not None:
        is_over = verdict.state in ("failed", "timed_out")
        wanted = retries > 0 and (agent.agent_class == "broken" or verdict.reason == "timeout")
        return is_over and verdict.reason != "not_started" and (agent.agent_class == "unavailable" or wanted)
    return verdict.state in ("failed", "timed_out") and verdict.reason in _WORTH_IT


def retry_delay(retries_before: int) -> timedelta:
    """Return the delay before the next attempt.

    The first delay is one second. Each further delay is twice as long, but at most five minutes.
    """
    delay: timedelta = _FIRST_DELAY * (1 << min(retries_before, 16))
    return min(delay, _LONGEST_DELAY)

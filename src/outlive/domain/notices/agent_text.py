"""Lines and phrases about agents: their model, their cost and how they ended."""

from __future__ import annotations

from outlive.domain.text.sanitize import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive.domain.agents.result import AgentResult
    from outlive.domain.tasks.task import Attempt

_NAME, _ERROR, _ATTEMPTS_SHOWN = 80, 160, 5


def model_name(result: AgentResult) -> str:
    """Return the client and the model, such as `claude:opus`."""
    return one_line(result.client if result.model is None else f"{result.client}:{result.model}", _NAME)


def spent(result: AgentResult) -> str:
    """Return a phrase for the turns, tool calls, tokens and cost of an attempt.

    For example `3 turns, 12 tool calls, 5,120 + 310 tokens, $0.34`.
    """
    parts = []
    if result.turns:
        parts.append(f"{result.turns} turn{'s' if result.turns != 1 else ''}")
    if result.calls:
        parts.append(f"{result.calls} tool call{'s' if result.calls != 1 else ''}")
    if result.input_tokens is not None or result.output_tokens is not None:
        parts.append(f"{result.input_tokens or 0:,} + {result.output_tokens or 0:,} tokens")
    if result.cost_usd is not None:
        parts.append(_dollars(result.cost_usd))
    return ", ".join(parts)


def agent_line(result: AgentResult) -> str:
    """Return one line about an agent: model, session, turns, tokens and cost."""
    session = "" if result.session is None else f", session {one_line(result.session, _NAME)}"
    used = spent(result)
    return f"{model_name(result)}{session}{f'; {used}' if used else ''}"


def result_lines(result: AgentResult) -> list[str]:
    """Return lines about an ended attempt of an agent, without the agent's answer."""
    lines = []
    if result.question is not None and result.agent_class == "asked":
        lines.append(f"question: {one_line(result.question, 4 * _ERROR)}")
    if result.error is not None and result.agent_class != "answered":
        lines.append(f"error: {one_line(result.error, 2 * _ERROR)}")
    if result.denied:
        names = ", ".join(one_line(name, 40) for name in result.denied[:8])
        lines.append(f"denied: {names}{f' and {len(result.denied) - 8} more' if len(result.denied) > 8 else ''}")
    if result.worktree is not None:
        lines.append(f"worktree: {one_line(result.worktree, 300)}, branch {one_line(result.branch or '?', _NAME)}")
    return lines


def attempt_lines(attempts: Sequence[Attempt]) -> list[str]:
    """Return a line for each earlier attempt of an agent: model, result and cost."""
    found = [each for each in attempts if each.agent is not None][-_ATTEMPTS_SHOWN:]
    costs = [each.agent.cost_usd if each.agent is not None else None for each in found]
    return [
        f"attempt {each.number}: {_attempt(each)}{f', {_dollars(cost)}' if cost else ''}"
        for each, cost in zip(found, costs, strict=True)
    ]


def retry_words(before: Attempt, after: Attempt | None) -> str:
    """Return why a task is tried again, and the model of the next attempt.

    For example `claude:opus unavailable (429), now codex:gpt-5`.
    """
    now = "" if after is None or after.agent is None else f", now {model_name(after.agent)}"
    return f"{_attempt(before)}{now}"


def _dollars(cost: float) -> str:
    return f"${cost:.2f}" if cost >= 0.01 else f"${cost:.4f}"


def _attempt(attempt: Attempt) -> str:
    agent = attempt.agent
    if agent is None:
        return attempt.state
    error = "" if agent.error is None else f" ({one_line(agent.error, _ERROR)})"
    return f"{model_name(agent)} {agent.agent_class or attempt.state}{error}"

"""The result of an agent task's attempt, as the client's adapter reads it."""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    # - `answered`: the agent has given a final answer.
    # - `refused`: the request was bad, rights were missing or the model is unknown.
    # - `unavailable`: the model is overloaded, the quota is used up or the network failed.
    # - `stopped`: the agent reached a limit or was ended.
    # - `asked`: the agent needs an answer from the user.
    # - `broken`: the client itself failed.
    AgentClass = Literal["answered", "refused", "unavailable", "stopped", "asked", "broken"]
    Limit = Literal["cost_limit", "turn_limit"]


class AgentResult(Value):
    """The known results of an agent task's attempt. Unknown fields are None."""

    client: str
    model: str | None = None
    """The model that answered, or the requested model if the client does not name the model that answered."""
    asked: str | None = None
    """The requested model. None if the choice was left to the client."""
    session: str | None = None
    agent_class: AgentClass | None = None
    """The class of the result. None while the attempt runs."""
    limit: Limit | None = None
    """The limit of the task that made the client end the attempt.

    The client itself checked this limit.
    """
    error: str | None = None
    question: str | None = None
    """The question that the agent asks the user. Set only for the class `asked`."""
    turns: int = 0
    calls: int = 0
    """The number of tool calls."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    denied: tuple[str, ...] = ()
    """The tools whose use was denied."""
    is_unstable: bool = False
    last: str | None = None
    """The newest progress: the agent's last tool call or its last message."""
    retry_after_s: float | None = None
    """The number of seconds that the provider asks to wait before the next request. None if it did not ask."""
    worktree: str | None = None
    """The agent's own git worktree, if it was kept because its content has changed."""
    branch: str | None = None
    """The branch of the worktree in `worktree`."""


def result_json(result: AgentResult) -> dict[str, Any]:
    """Return a result as the JSON values that are stored. Empty fields are left out."""
    document = {name: value for name, value in result.__dict__.items() if value not in (None, (), False)}
    document["denied"] = list(result.denied)
    return document


def result_from(document: Mapping[str, Any]) -> AgentResult:
    """Return the result from the JSON values that `result_json` returned."""
    known = {name: value for name, value in document.items() if name in AgentResult._fields}
    known["denied"] = tuple(known.get("denied", ()))
    return AgentResult(**known)

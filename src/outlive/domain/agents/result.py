"""How an attempt of an agent task ended, as its client's adapter reads it."""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    # `answered` has a final answer. `refused` means a bad request, missing rights or an unknown model, `unavailable` an
    # overload, a used-up quota or a network failure. `stopped` reached a limit or was ended, `asked` needs an answer
    # from the user, and `broken` is a failure of the client itself.
    AgentClass = Literal["answered", "refused", "unavailable", "stopped", "asked", "broken"]
    Limit = Literal["cost_limit", "turn_limit"]


class AgentResult(Value):
    """What is known of an attempt of an agent task. Unknown fields are None."""

    client: str
    model: str | None = None
    """The model that answered, as far as the client names it. Otherwise the model that was asked for."""
    asked: str | None = None
    """The model that was asked for. None if that was left to the client."""
    session: str | None = None
    agent_class: AgentClass | None = None
    """None while the attempt runs."""
    limit: Limit | None = None
    """The limit of the task at which the client ended the attempt by itself."""
    error: str | None = None
    question: str | None = None
    """What an agent of the class `asked` wants to know."""
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
    """The newest progress: the last tool call or the last words."""
    retry_after_s: float | None = None
    """How long the model asks to be left alone, if it said so."""
    worktree: str | None = None
    """The agent's own git worktree, if it was kept because something in it has changed."""
    branch: str | None = None
    """The branch of that worktree."""


def result_json(result: AgentResult) -> dict[str, Any]:
    """Return a result as the JSON values that are stored. Empty fields are left out."""
    document = {name: value for name, value in result.__dict__.items() if value not in (None, (), False)}
    document["denied"] = list(result.denied)
    return document


def result_from(document: Mapping[str, Any]) -> AgentResult:
    """Return the result that `result_json` described."""
    known = {name: value for name, value in document.items() if name in AgentResult._fields}
    known["denied"] = tuple(known.get("denied", ()))
    return AgentResult(**known)

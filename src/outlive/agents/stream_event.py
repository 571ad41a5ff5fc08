"""The events into which an adapter translates the lines of its client."""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from outlive.domain.agents.result import AgentClass, Limit

    Kind = Literal[
        "session",  # the client names its session, or the model that it uses
        "reply",  # the model begins a new reply, which is a new turn
        "text",  # words of the model
        "thinking",  # reasoning of the model
        "prompt",  # words of the user
        "tool_call",
        "tool_result",
        "progress",  # a sign of life without content
        "retry",  # the client waits and tries again: no progress
        "usage",  # tokens or cost
        "denied",  # a tool was not allowed
        "question",  # the model asks the user
        "error",  # an error after which the client may go on
        "final",  # the end of the run, as the client reports it
    ]


class Event(Value):
    """One event of a run."""

    kind: Kind
    at: float | None = None
    """Seconds since 1970. None if the client gives no time."""
    text: str = ""
    """Words, the output of a tool, or an error message. For `final`, the answer if the client repeats it."""
    is_whole: bool = False
    """Whether a `text` is a whole message, so that it replaces earlier words of the same reply as the answer."""
    is_aside: bool = False
    """Whether the event belongs to a sub-agent, so that it is no answer."""
    id: str | None = None
    """The id of a tool call, by which its result is found."""
    tool: str | None = None
    given: object = None
    """The input of a tool call."""
    is_error: bool = False
    is_waiting: bool = False
    """Whether after a `final` the client stays, because commands in the background may make it go on."""
    session: str | None = None
    model: str | None = None
    agent_class: AgentClass | None = None
    """For `final` and `error`: the class of the ending, if the line tells it."""
    limit: Limit | None = None
    """For `final`: the limit at which the client ended the run by itself."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    is_total: bool = False
    """Whether a `usage` counts the whole run, and not only what is new."""
    retry_after_s: float | None = None

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
        "text",  # text of the model
        "thinking",  # reasoning of the model
        "prompt",  # text of the user
        "tool_call",
        "tool_result",
        "progress",  # the client works, but reports no content
        "retry",  # the client waits and tries again, which is no progress
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
    """The text, the output of a tool, or an error message.

    In a `final` event: the answer, if the client repeats the answer there.
    """
    is_whole: bool = False
    """Whether a `text` event is a whole message. Then the earlier text of the same reply is not part of the answer."""
    is_aside: bool = False
    """Whether the event belongs to a sub-agent. Then its text is not part of the answer."""
    id: str | None = None
    """The id of a tool call, by which its result is found."""
    tool: str | None = None
    given: object = None
    """The input of a tool call."""
    is_error: bool = False
    is_waiting: bool = False
    """Whether the client keeps running after a `final` event, because a command in the background may make it go on."""
    session: str | None = None
    model: str | None = None
    agent_class: AgentClass | None = None
    """For `final` and `error`: the class of the ending, if the line contains it."""
    limit: Limit | None = None
    """For `final`: the limit at which the client ended the run by itself."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    is_total: bool = False
    """Whether a `usage` event counts the whole run, and not only the part since the last `usage` event."""
    retry_after_s: float | None = None

"""The events into which an adapter translates the lines of its client."""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from outlive.domain.agents.result import AgentClass, Limit

    Kind = Literal[
        "session",  # the client prints the id of its session, or the model that it uses
        "reply",  # the model begins a new reply, which counts as a new turn
        "text",  # a text that the model wrote
        "thinking",  # a reasoning text of the model
        "prompt",  # a text that the user wrote
        "tool_call",
        "tool_result",
        "progress",  # a sign that the client works, without content
        "retry",  # the client waits and will send its request again, which is no progress
        "usage",  # the tokens or the cost that were used
        "denied",  # a tool call was not allowed
        "question",  # the model asks the user a question
        "error",  # an error, after which the client may still go on
        "final",  # the client reports that the run has ended
    ]


class Event(Value):
    """One event in the run of an agent, such as a text or a tool call."""

    kind: Kind
    at: float | None = None
    """The time of the event in seconds since 1970. None if the client prints no time."""
    text: str = ""
    """The text of the model, the output of a tool, or an error message.

    For a `final` event, this is the answer, if the client prints the answer again.
    """
    is_whole: bool = False
    """Whether a `text` event is a whole message. Then the texts before it in the same reply are not part of the answer.
    """
    is_aside: bool = False
    """Whether the event belongs to a sub-agent. If it does, its text is not part of the answer."""
    id: str | None = None
    """The id of a tool call. The event with the tool's result has the same id."""
    tool: str | None = None
    given: object = None
    """The input of a tool call, as the client prints it."""
    is_error: bool = False
    is_waiting: bool = False
    """Whether the client still runs after a `final` event. A background command of the client may make it go on."""
    session: str | None = None
    model: str | None = None
    agent_class: AgentClass | None = None
    """For `final` and `error` events: the result class, such as `refused`, if the output line shows it."""
    limit: Limit | None = None
    """For `final` events: the limit, such as the turns, at which the client itself ended the run."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    is_total: bool = False
    """Whether a `usage` event counts the whole run. Otherwise, it counts only what was used since the last `usage`
    event.
    """
    retry_after_s: float | None = None

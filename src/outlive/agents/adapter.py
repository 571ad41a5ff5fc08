"""The base class of all adapters, and the classes of errors in their output.

An adapter starts one agent client and reads the client's output. All code that is specific to a client is in the
client's adapter. To add a client, add one module here and the client's name in `find_adapter`.
"""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from outlive.agents.stream_event import Event
    from outlive.domain.agents.request import AgentRequest, AgentStart
    from outlive.domain.agents.result import AgentClass


class CommandLine(Value):
    """The arguments and the environment variables with which a client is started.

    The client reads the prompt from standard input, unless `argv` contains the prompt.
    """

    argv: tuple[str, ...]
    environ: Mapping[str, str]
    """The environment variables to set for the client."""


class Patience(Value):
    """How many seconds an attempt may pass without progress before it is ended.

    A retry by the client does not count as progress.
    """

    first_s: float = 180.0
    """The seconds from the start until the first progress."""
    idle_s: float = 600.0
    """The seconds between two signs of progress while no tool runs."""
    tool_s: float = 3600.0
    """The seconds between two signs of progress while a tool runs."""
    linger_s: float = 60.0
    """The seconds that the client may keep running after its final answer."""


class Adapter:
    """The base class of the code that starts one client and reads its output.

    An adapter object serves one attempt, and may have state. `events` and `remarks` raise no exception, whatever the
    input is. They yield nothing for a line that they do not know.
    """

    name = ""
    provider = ""
    """The provider of a model, if the name of the model does not contain a provider."""
    patience = Patience()
    reports_cost = False
    """Whether the client reports the cost during a run. Only then can Outlive enforce a budget."""
    reports_tokens = False
    """Whether the client reports tokens already during the run. Only then can Outlive enforce a token limit."""
    counts_turns = True
    """Whether the client reports its turns during the run. Only then can Outlive enforce a turn limit."""
    takes_model = True
    """Whether an argument can tell the client which model to use."""
    has_session_cost = False
    """Whether the cost that a client reports for a resumed session includes the session's earlier runs."""
    has_session_tokens = False
    """Whether the tokens that a client reports for a resumed session include the session's earlier runs."""
    can_resume = True
    takes_prompt_as_argument = False
    assigns_session = False
    """Whether Outlive can choose the id of a new session, by passing a UUID to the client."""
    session_variables: tuple[str, ...] = ()
    """The environment variables that this client sets for its child processes.

    A background agent must not inherit these variables.
    """

    def __init__(self, table: Mapping[str, Any] | None = None) -> None:
        """Read the user's settings for this client (see docs/reference/settings.md)."""
        self.table: Mapping[str, Any] = table or {}

    def command(self, request: AgentRequest, start: AgentStart, prompt: str, environ: Mapping[str, str]) -> CommandLine:
        """Return the arguments and environment variables with which an attempt is started.

        `environ` is the environment that the client will inherit. The returned variables are added to it.
        """
        raise NotImplementedError

    def words(self) -> tuple[str, ...]:
        """Return the program that starts this client, with its first arguments.

        They come from the user's settings. Without a setting, the program has the name of the client.
        """
        return _words(self.table.get("command")) or (self.name,)

    def extra(self) -> tuple[str, ...]:
        """Return additional arguments for the client, from the user's settings."""
        return _words(self.table.get("arguments"))

    def provider_of(self, model: str | None) -> str:
        """Return the provider of a model: the part of the model's name before a slash.

        If the name has no slash, the client's own provider is returned.
        """
        return model.partition("/")[0] if model and "/" in model else self.provider or self.name

    def events(self, line: dict[str, Any]) -> Iterator[Event]:
        """Translate one line of the client's output, parsed as JSON, into events."""
        raise NotImplementedError

    def remarks(self, text: str) -> Iterator[Event]:  # noqa: ARG002 - only subclasses use this argument
        """Translate one output line that is not JSON, such as a line of standard error."""
        yield from ()

    def judge(self, errors: Sequence[str], last_line: str, ending: str) -> tuple[AgentClass, str]:
        """Return the result class and the error of a run that ended without a final event.

        The class is never `answered`. This method is called only if no error event had a known class. `errors` are the
        messages of error events, `last_line` is the last line that was not JSON, and `ending` is a phrase about the
        exit of the process.
        """
        last = errors[-1] if errors else last_line
        return "broken", f"the client ended without a result ({ending})" + (f": {last}" if last else "")

    def class_of(self, error: str) -> AgentClass | None:
        """Return the result class that an error message stands for, such as `refused`.

        Return None if the message is not known.
        """
        return class_of_error(error)


def _words(given: object) -> tuple[str, ...]:
    """Return a string, or a list of strings, from the settings as a tuple."""
    if isinstance(given, str):
        return (given,)
    return tuple(map(str, given)) if isinstance(given, (list, tuple)) else ()


_SENTENCES: tuple[tuple[AgentClass, tuple[str, ...]], ...] = (
    (
        "unavailable",
        (
            "overloaded",
            "rate limit",
            "rate_limit",
            "too many requests",
            "quota",
            "usage limit",
            "usage_limit",
            "credit balance",
            "billing",
            "at capacity",
            "high demand",
            "server error",
            "server_error",
            "internal error",
            "service unavailable",
            "bad gateway",
            "gateway timeout",
            "timed out",
            "timeout",
            "econnrefused",
            "econnreset",
            "enotfound",
            "etimedout",
            "eai_again",
            "connection refused",
            "connection reset",
            "connection error",
            "connection closed",
            "socket hang up",
            "fetch failed",
            "network",
            "stream disconnected",
            "stream error",
            "terminated",
        ),
    ),
    (
        "stopped",
        (
            "context window",
            "context length",
            "context_length",
            "prompt is too long",
            "maximum context",
            "token count exceeds",
            "max turns",
            "turn limit",
        ),
    ),
    (
        "refused",
        (
            "unauthorized",
            "authentication",
            "invalid api key",
            "incorrect api key",
            "invalid_api_key",
            "api key not valid",
            "permission denied",
            "permission_denied",
            "forbidden",
            "not found",
            "not_found",
            "does not exist",
            "invalid request",
            "invalid_request",
            "bad request",
            "unsupported",
        ),
    ),
)
_STATUSES: tuple[tuple[AgentClass, tuple[int, ...]], ...] = (
    ("unavailable", (402, 408, 409, 425, 429, *range(500, 600))),
    ("refused", (400, 401, 403, 404, 405, 413, 422)),
)


def class_of_status(status: object) -> AgentClass | None:
    """Return the result class that an HTTP status stands for, such as `unavailable`.

    Return None if the status is not a known error.
    """
    return next((each for each, known in _STATUSES if status in known), None)


def class_of_error(error: str) -> AgentClass | None:
    """Return the result class that an error message stands for, such as `unavailable`.

    Return None if the message is not known. The class is recognized by phrases that providers and libraries use in
    their messages.
    """
    text = error.lower()
    return next((each for each, words in _SENTENCES if any(word in text for word in words)), None)

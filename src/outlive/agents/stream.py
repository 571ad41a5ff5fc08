"""The reader of a client's output, which turns lines into events and a result.

The output can be read in pieces of any size while it grows. Reading it again from the start gives the same result. No
output of a client makes the reader raise an exception. A run counts as answered only if the client has reported its
end.
"""

from __future__ import annotations

from outlive.agents.fields import parse_line
from outlive.domain.agents.result import AgentResult
from outlive.domain.agents.runaway import Runaway
from outlive.domain.text.sanitize import plain, to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from outlive.agents.adapter import Adapter
    from outlive.agents.stream_event import Event
    from outlive.domain.agents.request import AgentRequest, AgentStart
    from outlive.domain.agents.result import AgentClass
    from outlive.domain.tasks.evidence import IntentKind

# A client prints the whole result of a tool as one line. Longer lines are dropped, because they would use up the
# memory.
LONGEST_LINE = 32 << 20
_ERRORS_KEPT, _ERROR_LENGTH, _LAST_LENGTH = 5, 2000, 200
_UNTOLD = "the agent asked a question, but its client did not print the question"
_BACKGROUND = "commands in the background"
_NO_PROGRESS = ("session", "retry", "usage", "error", "prompt")


def _input_text(given: object) -> str:
    """Return the input of a tool call as a string. Equal inputs give equal strings."""
    try:
        return to_json(given)
    except RecursionError:
        return "[too deep to be shown]"


class Lines:
    """A splitter of output into lines. The output arrives in pieces of any size."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._is_dropped = False

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Return the lines that end in this piece of output. Drop lines that are too long."""
        *ended, rest = piece.split(b"\n")
        for part in ended:
            line = b"".join((*self._parts, part))
            if not self._is_dropped and len(line) <= LONGEST_LINE:
                yield line
            self._parts, self._size, self._is_dropped = [], 0, False
        self._size += len(rest)
        if self._size > LONGEST_LINE:
            self._parts, self._is_dropped = [], True
        elif rest:
            self._parts.append(rest)

    def end(self) -> bytes:
        """Return the incomplete line at the end of the output, which may be empty."""
        return b"" if self._is_dropped else b"".join(self._parts)


def events_of(adapter: Adapter, line: bytes) -> Iterator[Event]:
    """Yield the events of one line, which may be JSON or plain text."""
    found = parse_line(line)
    if found is not None:
        # Invalid UTF-8 is tolerated except in the final event. The answer of a model is never invalid UTF-8, so such a
        # final event is damaged.
        is_damaged = _is_damaged(line)
        for event in adapter.events(found):
            if not is_damaged or event.kind != "final":
                yield event
    elif b"\0" not in line and (text := line.decode("utf-8", "replace").strip()):
        # A line with NUL bytes is ignored. They show that a part of the output is missing.
        yield from adapter.remarks(plain(text))


def _is_damaged(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return True
    return False


class StreamReader:
    """The state of an agent's run, read from the output of its client so far."""

    def __init__(
        self,
        adapter: Adapter,
        request: AgentRequest,
        start: AgentStart,
        on_event: Callable[[Event], object] = lambda _: None,
    ) -> None:
        self._adapter = adapter
        self._request = request
        self._on_event = on_event
        self._lines = Lines()
        self._is_unstable = request.candidate(start.client, start.model).is_unstable
        self._client, self._asked_model = start.client, start.model
        self._start = start
        self.model: str | None = None
        self.session = start.session
        self.turns = 0
        self.runaway = Runaway(request.most_calls)
        self.progress = 0
        """The number of events so far that count as progress, unlike retries."""
        self.open_calls: dict[str, str] = {}
        """The names of the tools that still run, by the id of the tool call."""
        self.is_retrying = False
        """Whether the client has reported a retry and has made no progress since then."""
        self.last: str | None = None
        self._answer: list[str] = []
        self._final: Event | None = None
        self._question: str | None = None
        self._asked_in_turn = 0
        self._denied: dict[str, None] = {}
        self._errors: list[str] = []
        self._failure: tuple[AgentClass, str] | None = None
        """The newest error whose result class is known. None if the run went on after the error."""
        self._remark = ""
        self._retry_after: float | None = None
        self._tokens: list[int | None] = [None, None]
        self._cost: float | None = None

    def feed(self, piece: bytes) -> None:
        """Read the next piece of the client's output."""
        for line in self._lines.feed(piece):
            self._read(line)

    def finish(self) -> None:
        """Read the last line of the output, even if it has no line end."""
        self._read(self._lines.end())
        self._lines = Lines()

    def _read(self, line: bytes) -> None:
        is_known = False
        for event in events_of(self._adapter, line):
            is_known = True
            self._take(event)
            self._on_event(event)
        if not is_known and line.strip() and not line.startswith(b"{") and b"\0" not in line:
            self._remark = line[-_ERROR_LENGTH:].decode("utf-8", "replace").strip()
            self._remark = plain(self._remark)

    @property
    def has_ended(self) -> bool:
        """Whether the client has reported the end of the run.

        False while a background command of the client runs, because the client may go on after that command.
        """
        return self._final is not None and not self._final.is_waiting

    @property
    def answer(self) -> str:
        """The agent's final answer, or the agent's last text if there is no final answer."""
        if self._final is not None and self._final.agent_class == "answered" and self._final.text.strip():
            return self._final.text
        return "".join(self._answer).strip()

    @property
    def cost_usd(self) -> float | None:
        """The cost of this run so far in dollars, without earlier runs of its session."""
        before = self._start.cost_before_usd if self._adapter.has_session_cost and self._start.is_resumed else None
        return self._cost if self._cost is None or before is None else max(0.0, self._cost - before)

    @property
    def session_cost_usd(self) -> float | None:
        """The cost that the client reported, perhaps with earlier runs of the session."""
        return self._cost

    @property
    def session_tokens(self) -> tuple[int, int] | None:
        """The tokens that the client reported, perhaps with earlier runs of the session.

        The result is None, or the input tokens and the output tokens.
        """
        return None if self._tokens == [None, None] else (self._tokens[0] or 0, self._tokens[1] or 0)

    @property
    def tokens(self) -> tuple[int | None, int | None]:
        """The input and output tokens of this run, without earlier runs of its session."""
        before = self._start.tokens_before if self._adapter.has_session_tokens and self._start.is_resumed else None
        if before is None:
            return self._tokens[0], self._tokens[1]
        found = [None if now is None else max(0, now - was) for now, was in zip(self._tokens, before, strict=True)]
        return found[0], found[1]

    def limit_reached(self) -> tuple[IntentKind, str] | None:
        """Return the name of the limit that the task has reached, and a sentence about it.

        Returns None if no limit is reached. The cost, tokens and turns of the task's earlier attempts count, too.
        """
        request, start = self._request, self._start
        cost, turns = start.spent_usd + (self.cost_usd or 0), start.spent_turns + self.turns
        spent = start.spent_tokens + sum(each or 0 for each in self.tokens)
        if (why := self.runaway.reason) is not None:
            return "runaway", f"it was ended as a runaway: {why}"
        if request.budget_usd is not None and cost > request.budget_usd:
            return "cost_limit", f"it cost ${cost:.2f}, and its budget is ${request.budget_usd:.2f}"
        if request.max_tokens is not None and spent > request.max_tokens:
            return "token_limit", f"it used {spent} tokens, and its limit is {request.max_tokens}"
        if request.max_turns is not None and turns > request.max_turns:
            return "turn_limit", f"it began turn {turns}, and its limit is {request.max_turns} turns"
        return None

    def result(self, ending: str | None = None) -> AgentResult:
        """Return the result of the run as far as the output shows it.

        `ending` is a phrase about how the client's process ended, or None while the process runs.
        """
        agent_class, error = (None, None) if ending is None else self._judge(ending)
        tokens = self.tokens
        return AgentResult(
            client=self._client,
            model=self.model or self._asked_model,
            asked=self._asked_model,
            session=self.session,
            agent_class=agent_class,
            limit=None if agent_class != "stopped" or self._final is None else self._final.limit,
            error=None if error is None else error[:_ERROR_LENGTH],
            question=(self._question or self.answer or _UNTOLD) if agent_class == "asked" else None,
            turns=self.turns,
            calls=self.runaway.calls,
            input_tokens=tokens[0],
            output_tokens=tokens[1],
            cost_usd=self.cost_usd,
            denied=tuple(self._denied),
            is_unstable=self._is_unstable,
            last=self.last,
            retry_after_s=self._retry_after if agent_class == "unavailable" else None,
        )

    def _judge(self, ending: str) -> tuple[AgentClass, str | None]:
        final = self._final
        if final is None and self._failure is not None:
            return self._failure
        if final is None and self._question is not None:
            return "asked", None
        if final is None:
            return self._adapter.judge(self._errors, self._remark, ending)
        if final.agent_class == "answered":
            if self._question is not None:
                return "asked", None
            return ("answered", None) if self.answer else ("broken", "the client reported success, but no answer")
        return final.agent_class or "broken", final.text or (self._errors[-1] if self._errors else None)

    def _take(self, event: Event) -> None:
        """Update the state of the run with one event."""
        if event.kind not in _NO_PROGRESS:
            self.progress += 1
            self.is_retrying = False
        elif event.kind == "retry":
            self.is_retrying = True
        if event.kind in ("reply", "text", "tool_call", "prompt", "error"):
            self._final = None  # the client has gone on after it reported an end, so the run is not over
        if event.kind in ("reply", "text", "tool_call", "tool_result") and not event.is_aside:
            self._errors, self._failure, self._retry_after = [], None, None  # the run went on after the earlier errors
            self._remark = ""
        handler = getattr(self, f"_take_{event.kind}", None)
        if handler is not None:
            handler(event)

    def _take_session(self, event: Event) -> None:
        self.session = event.session or self.session
        self.model = event.model or self.model

    def _take_reply(self, event: Event) -> None:
        if not event.is_aside:
            self.turns += 1
            self.open_calls.pop(_BACKGROUND, None)
            self._answer = []
            self.model = event.model or self.model

    def _take_text(self, event: Event) -> None:
        if event.is_aside:
            return
        if event.is_whole:
            self._answer = []
        self._answer.append(event.text)
        if words := " ".join(event.text.split()):
            self.last = words[-_LAST_LENGTH:]

    def _take_tool_call(self, event: Event) -> None:
        tool = event.tool or "?"
        given = _input_text(event.given)
        self.runaway.count(f"{tool} {given}")
        if event.id is not None:
            self.open_calls[event.id] = tool
        self.last = f"{tool} {given}"[:_LAST_LENGTH]
        if not event.is_aside:
            self._answer = []
            if self.turns > self._asked_in_turn:
                self._question = None  # the agent went on after its question, so it does not wait for a reply

    def _take_tool_result(self, event: Event) -> None:
        if event.id is not None:
            self.open_calls.pop(event.id, None)
        if not event.is_aside:
            self._answer = []

    def _take_usage(self, event: Event) -> None:
        for at, count in enumerate((event.input_tokens, event.output_tokens)):
            if count is not None:
                self._tokens[at] = count if event.is_total else (self._tokens[at] or 0) + count
        if event.cost_usd is not None:
            self._cost = event.cost_usd if event.is_total else (self._cost or 0.0) + event.cost_usd

    def _take_denied(self, event: Event) -> None:
        self._denied[event.tool or self.open_calls.get(event.id or "") or "?"] = None

    def _take_question(self, event: Event) -> None:
        self._question = event.text[:_ERROR_LENGTH]
        self._asked_in_turn, self._failure = self.turns, None

    def _take_prompt(self, event: Event) -> None:
        if not event.is_aside:
            self._answer = []

    def _take_retry(self, event: Event) -> None:
        self._keep_error(event)
        self._retry_after = event.retry_after_s

    def _take_error(self, event: Event) -> None:
        self.runaway.count_error(event.text)
        self._keep_error(event)

    def _keep_error(self, event: Event) -> None:
        self._errors = [*self._errors, event.text[:_ERROR_LENGTH]][-_ERRORS_KEPT:]
        found = event.agent_class or self._adapter.class_of(event.text)
        if found is not None:
            self._failure = found, event.text[:_ERROR_LENGTH]
        self._retry_after = event.retry_after_s if event.retry_after_s is not None else self._retry_after

    def _take_final(self, event: Event) -> None:
        self._final = event
        self.model = event.model or self.model
        self.open_calls.clear()
        if event.is_waiting:
            self.open_calls[_BACKGROUND] = _BACKGROUND

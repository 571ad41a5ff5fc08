"""OpenCode as a background agent: `opencode run --format json`.

OpenCode prints no final event. The answer is the text of the last step, if this step ended with the reason `stop`. A
tool call is printed once, after it has ended. The steps and the cost of sub-agents are not printed at all.
"""

from __future__ import annotations

from outlive.agents import fields
from outlive.agents.adapter import Adapter, CommandLine, Patience, class_of_status
from outlive.agents.stream_event import Event
from outlive.domain.text.sanitize import from_json, to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from outlive.domain.agents.request import AgentRequest, AgentStart
    from outlive.domain.agents.result import AgentClass

_SETTINGS = "OPENCODE_CONFIG_CONTENT"
_ASKED = "permission requested: "
_DIGITS = 7
_LOGGED = 'message="stream error"'
_QUESTION_TOOL = "question"
_DENIALS = ("rejected permission", "prevents you from using", "specified a rule")
_ENDINGS: dict[str, AgentClass] = {"stop": "answered", "length": "stopped", "content-filter": "refused"}
_GOES_ON = ("tool-calls", "unknown", "")
# OpenCode's names of errors that come without an HTTP status, each with our result class.
_ERRORS: dict[str, AgentClass] = {
    "ProviderAuthError": "refused",
    "MessageOutputLengthError": "stopped",
    "ContextOverflowError": "stopped",
    "MessageAbortedError": "stopped",
}


class OpenCode(Adapter):
    """The adapter of OpenCode."""

    name = "opencode"
    # If a provider asks for a delay of an hour, OpenCode waits for an hour and prints nothing on standard output. While
    # a sub-agent works, OpenCode prints nothing either. So the time allowed without progress must be long.
    patience = Patience(first_s=300.0, idle_s=900.0)
    reports_cost = True
    reports_tokens = True
    session_variables = ("OPENCODE", "OPENCODE_PID")

    def __init__(self, table: Any = None) -> None:
        super().__init__(table)
        self._compacts = False
        """Whether the next step only summarizes the conversation, because it was too long for the model."""

    def command(self, request: AgentRequest, start: AgentStart, prompt: str, environ: Mapping[str, str]) -> CommandLine:  # noqa: ARG002 - only other clients use some of these arguments
        """Return the command line of `opencode run`, with the prompt as standard input.

        The prompt is not an argument, because OpenCode puts quotes around an argument.
        """
        # Without these options, OpenCode does not report its retries. They appear only as errors in the log.
        words = [*self.words(), "run", "--format", "json", "--print-logs", "--log-level", "ERROR"]
        if start.model is not None:
            words += ["-m", start.model]
        if start.is_resumed and start.session is not None:
            words += ["-s", start.session]
        return CommandLine(argv=(*words, *self.extra()), environ=_going_on_after_denials(environ))

    def provider_of(self, model: str | None) -> str:
        """Return the provider of a model: the part of its name before the first slash.

        If there is no slash, return the name of the client.
        """
        return model.partition("/")[0] if model and "/" in model else self.name

    def events(self, line: dict[str, Any]) -> Iterator[Event]:
        """Translate one line of OpenCode's `--format json` output into events."""
        kind, part = line.get("type"), line.get("part")
        at = fields.moment(line, "timestamp")
        if session := fields.session(line, "sessionID"):
            yield Event(kind="session", session=session)
        if kind == "step_start":
            yield Event(kind="reply", at=at)
        elif kind == "text":
            # After OpenCode has summarized the conversation, it sends the model a prompt of its own. The step before
            # this prompt was the summary, and not an answer.
            is_ours = fields.find(part, "synthetic") is True
            yield Event(kind="prompt" if is_ours else "text", at=at, text=fields.text(part, "text"))
        elif kind == "reasoning":
            yield Event(kind="thinking", at=at, text=fields.text(part, "text"))
        elif kind == "tool_use":
            yield from self._tool(part, at)
        elif kind == "step_finish":
            yield from self._step_end(part, at)
        elif kind == "error":
            yield self._error(line.get("error"), at)

    @staticmethod
    def _tool(part: object, at: float | None) -> Iterator[Event]:
        """Translate a finished tool call into a call event and a result event.

        OpenCode prints a tool call only after it has ended.
        """
        tool, call = fields.text(part, "tool"), fields.text(part, "callID")
        given, error = fields.find(part, "state", "input"), fields.text(part, "state", "error")
        begun, ended = fields.moment(part, "state", "time", "start"), fields.moment(part, "state", "time", "end")
        output = fields.text(part, "state", "output")
        if tool == "invalid":  # the model called a tool that does not exist; the input contains that tool's name
            tool = fields.text(given, "tool") or tool
        yield Event(kind="tool_call", at=begun or at, id=call, tool=tool, given=given)
        is_error = fields.find(part, "state", "status") == "error" or fields.find(part, "tool") == "invalid"
        yield Event(kind="tool_result", at=ended or at, id=call, text=output or error, is_error=is_error)
        if tool == _QUESTION_TOOL:
            yield Event(kind="question", at=at, text=fields.questions(given))
        elif any(words in error for words in _DENIALS):
            yield Event(kind="denied", at=at, tool=tool)

    def _step_end(self, part: object, at: float | None) -> Iterator[Event]:
        counts = [fields.whole(part, "tokens", "input")]
        counts += [fields.whole(part, "tokens", "cache", name) for name in ("read", "write")]
        answers = [fields.whole(part, "tokens", name) for name in ("output", "reasoning")]
        yield Event(
            kind="usage",
            at=at,
            input_tokens=None if counts[0] is None else sum(each or 0 for each in counts),
            output_tokens=None if answers[0] is None else sum(each or 0 for each in answers),
            cost_usd=fields.number(part, "cost"),
        )
        reason = fields.text(part, "reason")
        if self._compacts:
            self._compacts = False
            return
        if reason == "stop":
            yield Event(kind="final", at=at, agent_class="answered")
        elif reason not in _GOES_ON:
            what = f"the model stopped with the reason {reason!r}"
            yield Event(kind="final", at=at, agent_class=_ENDINGS.get(reason, "broken"), text=what)

    def _error(self, error: object, at: float | None) -> Event:
        name, data = fields.text(error, "name"), fields.find(error, "data")
        text = fields.text(data, "message") or name or "error"
        found = class_of_status(fields.find(data, "statusCode")) or _ERRORS.get(name)
        if self.class_of(text) == "stopped":
            found = "stopped"  # the provider reports a conversation that is too long as a bad request
            self._compacts = True
        elif fields.find(data, "isRetryable") is True:
            found = "unavailable"
        delay = fields.text(data, "responseHeaders", "retry-after")
        return Event(
            kind="error",
            at=at,
            text=text,
            agent_class=found or self.class_of(text),
            retry_after_s=float(delay) if delay.isascii() and delay.isdecimal() and len(delay) < _DIGITS else None,
        )

    def remarks(self, text: str) -> Iterator[Event]:
        """Translate one line of OpenCode's standard error into events."""
        if _ASKED in text:
            yield Event(kind="denied", tool=text.partition(_ASKED)[2].partition(" ")[0])
        elif _LOGGED in text and "small=true" not in text:  # the small model only makes titles, skip its errors
            # The log names the session earlier than the JSON output does. The session of a sub-agent is ignored.
            session = _logged(text, " session.id=") if " mode=primary" in text else ""
            if session:
                yield Event(kind="session", session=fields.session({"id": session}, "id"))
            error = _logged(text, 'error.error="', '"').removeprefix("AI_APICallError: ") or text[:500]
            yield Event(kind="retry", text=error, agent_class=self.class_of(error) or "unavailable")
        elif "Session not found" in text:
            yield Event(kind="error", text=text, agent_class="refused")


def _going_on_after_denials(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the setting that lets a run continue after a denied approval.

    `opencode run` denies every request for approval, and then ends the run. With this setting, the model learns of the
    denial and continues. The setting does not change the user's permission rules, so the agent gets no further rights.

    The variable OPENCODE_PERMISSION could not do this. It decides for a whole tool, but the user's rules decide for
    each call.
    """
    try:
        settings = from_json(environ.get(_SETTINGS) or "{}")
    except (ValueError, RecursionError):
        return {}  # the user's own setting is not plain JSON, so Outlive cannot add to it and leaves it unchanged
    if not isinstance(settings, dict):
        return {}
    known = settings.get("experimental")
    experimental = {**(known if isinstance(known, dict) else {}), "continue_loop_on_deny": True}
    return {_SETTINGS: to_json({**settings, "experimental": experimental})}


def _logged(line: str, begin: str, end: str = " ") -> str:
    """Return a field of a line in OpenCode's log, or an empty string if it is missing.

    `begin` is the text before the field's value, and `end` the text after it.
    """
    return line.partition(begin)[2].partition(end)[0]

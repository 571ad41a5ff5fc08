"""Claude Code as a background agent: `claude -p` with streamed JSON."""

from __future__ import annotations

from outlive.agents import fields
from outlive.agents.adapter import Adapter, CommandLine, Patience, class_of_status
from outlive.agents.stream_event import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from outlive.domain.agents.request import AgentRequest, AgentStart
    from outlive.domain.agents.result import AgentClass, Limit

# These tools would keep a run open, or would wait for a person. With `-p`, the client switches off the tool for
# questions even if this list does not name it.
_TOOLS_OFF = "AskUserQuestion,ScheduleWakeup,CronCreate,EnterPlanMode,ExitPlanMode"
_QUESTION_TOOL = "AskUserQuestion"
_INPUT_TOKENS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
# The values of the field `assistant.error`, each with our result class. They stay the same in all client versions.
_CLASSES: dict[str, AgentClass] = {
    "authentication_failed": "refused",
    "model_not_found": "refused",
    "invalid_request": "refused",
    "billing_error": "unavailable",
    "rate_limit": "unavailable",
    "server_error": "unavailable",
    "overloaded": "unavailable",
    "max_output_tokens": "stopped",
}
# The client's names for an end at one of the limits that were set on its command line.
_LIMITS: dict[str, Limit] = {
    "error_max_turns": "turn_limit",
    "max_turns": "turn_limit",
    "error_max_budget_usd": "cost_limit",
    "budget_exhausted": "cost_limit",
}
_UNKNOWN_SESSION = "No conversation found"
_ENDINGS: dict[str, AgentClass] = {
    "error_max_turns": "stopped",
    "error_max_budget_usd": "stopped",
    "prompt_too_long": "stopped",
    "max_turns": "stopped",
    "budget_exhausted": "stopped",
    "aborted_tools": "stopped",
    "aborted_streaming": "stopped",
    "model_refusal_no_fallback": "refused",
}


class Claude(Adapter):
    """The adapter of Claude Code."""

    name = "claude"
    provider = "anthropic"
    patience = Patience(idle_s=420.0)
    reports_cost = True
    reports_tokens = True
    has_session_cost = True
    assigns_session = True
    session_variables = (
        "CLAUDECODE",
        "CLAUDE_CODE_CHILD_SESSION",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_SESSION_ATTENDED",
        "CLAUDE_CODE_MESSAGING_SOCKET",
        "CLAUDE_CODE_MESSAGING_TOKEN",
        "CLAUDE_CODE_CHILD_NOTES_DIR",
        "CLAUDE_CODE_EXECPATH",
        "CLAUDE_PID",
        "AI_AGENT",
    )

    def __init__(self, table: Any = None) -> None:
        super().__init__(table)
        self._message: str | None = None
        self._class: AgentClass | None = None
        self._is_waiting = False
        self._spent: list[int | None] = [None, None]
        """The tokens of the turns that have ended. One run may report the end of several turns, each with its own
        tokens.
        """

    def command(self, request: AgentRequest, start: AgentStart, prompt: str, environ: Mapping[str, str]) -> CommandLine:  # noqa: ARG002 - only other clients use some of these arguments
        """Return the command line of `claude -p`, with the prompt as standard input."""
        words = [*self.words(), "-p", "--output-format", "stream-json", "--verbose"]
        words += ["--permission-prompts", "none", "--disallowedTools", _TOOLS_OFF]
        if start.model is not None:
            words += ["--model", start.model]
        if start.session is not None:
            words += ["--resume" if start.is_resumed else "--session-id", start.session]
        # The client counts only this run. But the user's limits apply to all attempts of the task together, so what
        # earlier attempts used is subtracted.
        if request.max_turns is not None:
            words += ["--max-turns", str(max(1, request.max_turns - start.spent_turns))]
        if request.budget_usd is not None:
            words += ["--max-budget-usd", f"{max(0.0001, request.budget_usd - start.spent_usd):g}"]
        # Without this variable, the client would retry ten times, which takes three minutes. With it, the client gives
        # up after two retries, and Outlive can use the next model.
        return CommandLine(argv=(*words, *self.extra()), environ={"CLAUDE_CODE_MAX_RETRIES": "2"})

    def events(self, line: dict[str, Any]) -> Iterator[Event]:
        """Translate one line of Claude Code's `stream-json` output into events."""
        kind = line.get("type")
        if kind == "system":
            yield from self._system(line)
        elif kind == "assistant":
            yield from self._assistant(line)
        elif kind == "user":
            yield from self._user(line)
        elif kind == "tool_progress" and line.get("heartbeat") is not True:  # a tool that hangs sends heartbeats, too
            yield Event(kind="progress")
        elif kind == "result":
            yield from self._result(line)

    def _system(self, line: dict[str, Any]) -> Iterator[Event]:
        what = line.get("subtype")
        if what == "init":
            yield Event(
                kind="session",
                session=fields.session(line, "session_id"),
                model=fields.text(line, "model") or None,
            )
        elif what == "api_retry":
            yield Event(
                kind="retry",
                text=f"{fields.text(line, 'error') or 'error'} (status {line.get('error_status')})",
                agent_class=_CLASSES.get(fields.text(line, "error")),
            )
        elif what == "background_tasks_changed":
            self._is_waiting = bool(fields.items(line, "tasks"))
            yield Event(kind="progress")
        elif what == "permission_denied":
            yield Event(kind="denied", tool=fields.text(line, "tool_name") or None)
        elif what == "model_fallback":
            yield Event(kind="session", model=fields.text(line, "fallback_model") or None)

    def _assistant(self, line: dict[str, Any]) -> Iterator[Event]:
        at, is_aside = fields.moment(line, "timestamp"), line.get("parent_tool_use_id") is not None
        model, message = fields.text(line, "message", "model"), fields.text(line, "message", "id")
        if error := fields.text(line, "error"):
            self._class = _CLASSES.get(error) or class_of_status(line.get("api_error_status"))
        if model == "<synthetic>":
            return  # the client itself wrote this message and not the model, for instance to report an error
        if not is_aside and message != self._message:
            self._message, self._class = message, None
            yield Event(kind="reply", at=at, model=model or None)
            given, made = _tokens(line.get("message"))
            yield Event(kind="usage", at=at, input_tokens=given, output_tokens=made)
        for part in fields.items(line, "message", "content"):
            what = fields.text(part, "type")
            if what == "text":
                yield Event(kind="text", at=at, text=fields.text(part, "text"), is_aside=is_aside)
            elif what == "thinking":
                yield Event(kind="thinking", at=at, text=fields.text(part, "thinking"), is_aside=is_aside)
            elif what == "tool_use":
                yield from self._call(part, at, is_aside=is_aside)

    def _call(self, part: dict[str, Any], at: float | None, *, is_aside: bool) -> Iterator[Event]:
        tool, given = fields.text(part, "name"), part.get("input")
        yield Event(kind="tool_call", at=at, id=fields.text(part, "id"), tool=tool, given=given, is_aside=is_aside)
        if tool == _QUESTION_TOOL:
            yield Event(kind="question", at=at, text=fields.questions(given))

    def _user(self, line: dict[str, Any]) -> Iterator[Event]:
        at, is_aside = fields.moment(line, "timestamp"), line.get("parent_tool_use_id") is not None
        content = line.get("message", {}).get("content") if isinstance(line.get("message"), dict) else None
        if isinstance(content, str) and not line.get("isSynthetic"):
            yield Event(kind="prompt", at=at, text=content, is_aside=is_aside)
        for part in content if isinstance(content, list) else ():
            if fields.text(part, "type") == "tool_result":
                yield Event(
                    kind="tool_result",
                    at=at,
                    id=fields.text(part, "tool_use_id"),
                    text=_plain(part.get("content")),
                    is_error=part.get("is_error") is True,
                    is_aside=is_aside,
                )

    def _result(self, line: dict[str, Any]) -> Iterator[Event]:
        """Translate a `result` line, which reports the end of a turn, into events.

        `subtype` is `success` even for a failed turn, so `is_error` decides whether the turn failed.
        """
        for denial in fields.items(line, "permission_denials"):
            yield Event(kind="denied", tool=fields.text(denial, "tool_name") or None)
        for at, count in enumerate(_tokens(line)):
            if count is not None:
                self._spent[at] = (self._spent[at] or 0) + count
        yield Event(
            kind="usage",
            input_tokens=self._spent[0],
            output_tokens=self._spent[1],
            cost_usd=fields.number(line, "total_cost_usd"),
            is_total=True,
        )
        text = fields.text(line, "result")
        if line.get("is_error") is False and line.get("subtype") == "success":
            yield Event(kind="final", agent_class="answered", text=text, is_waiting=self._is_waiting)
            return
        errors = [str(each) for each in fields.items(line, "errors")]
        subtype, why = fields.text(line, "subtype"), fields.text(line, "terminal_reason")
        yield Event(
            kind="final",
            agent_class=self._class_of_end(subtype, why, line),
            limit=_LIMITS.get(subtype) or _LIMITS.get(why),
            text=text or "; ".join(errors) or why or subtype or "the client reported an error",
        )

    def class_of(self, error: str) -> AgentClass | None:
        """Return the result class that an error message stands for, such as `refused`.

        Return None if the message is not known.
        """
        return "refused" if _UNKNOWN_SESSION in error else super().class_of(error)

    def _class_of_end(self, subtype: str, why: str, line: dict[str, Any]) -> AgentClass:
        text = fields.text(line, "result") or " ".join(str(each) for each in fields.items(line, "errors"))
        return (
            _ENDINGS.get(subtype)
            or _ENDINGS.get(why)
            or self._class
            or class_of_status(line.get("api_error_status"))
            or self.class_of(text)
            or "broken"
        )


def _tokens(holder: object) -> tuple[int | None, int | None]:
    """Return the numbers of input and output tokens that a message or a turn has used."""
    counts = [fields.whole(holder, "usage", name) for name in _INPUT_TOKENS]
    given = None if counts == [None] * len(counts) else sum(each or 0 for each in counts)
    return given, fields.whole(holder, "usage", "output_tokens")


def _plain(content: object) -> str:
    """Return the text of a tool's result.

    The result is a string, or a list of objects with text.
    """
    if isinstance(content, str):
        return content
    return "\n".join(fields.text(part, "text") for part in content) if isinstance(content, list) else ""

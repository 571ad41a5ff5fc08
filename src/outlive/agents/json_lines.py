"""Any program that prints JSON Lines, used as a background agent.

A table of the user's configuration describes the program:

    [agents.clients.mybot]
    command = ["mybot", "--json"]             # the program; the prompt is its standard input
    prompt = "argument"                       # or: the prompt is the last argument
    model_arguments = ["--model", "{model}"]  # added if a model is asked for; without it, no model can be chosen
    resume = ["--resume", "{session}"]        # without it, sessions cannot be resumed
    session = "session_id"                    # the field with the session's id, in any line

    [agents.clients.mybot.lines]              # each kind of line: the values of its fields, then the fields to read
    answer = { when = { type = "result" }, text = "result" }
    text = { when = { type = "message" }, text = "content" }
    # without `tool`, turns cannot be limited
    tool = { when = { type = "call" }, name = "tool", input = "args", id = "id" }
    result = { when = { type = "output" }, text = "output", id = "id" }
    usage = { when = { type = "usage" }, input = "in", output = "out", cost = "usd" }
    error = { when = { type = "error" }, text = "message" }
    question = { when = { type = "ask" }, text = "question" }

A path such as `message.text` names a nested field.
"""

from __future__ import annotations

from outlive.agents import fields
from outlive.agents.adapter import Adapter, CommandLine
from outlive.agents.stream_event import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from outlive.domain.agents.request import AgentRequest, AgentStart

_TIMES = ("timestamp", "time", "created_at", "at")


class JsonLines(Adapter):
    """The adapter of a program that the user has described."""

    def __init__(self, table: Any = None) -> None:
        super().__init__(table)
        self.name = self.provider = str(self.table.get("name", "custom"))
        self.can_resume = "resume" in self.table
        self.takes_prompt_as_argument = self.table.get("prompt") == "argument"
        lines = self.table.get("lines")
        self._lines: dict[str, Any] = lines if isinstance(lines, dict) else {}
        self.takes_model = bool(self.table.get("model_arguments"))
        self.counts_turns = "tool" in self._lines  # a turn is only reported together with a tool call
        usage = fields.find(self._lines, "usage")
        self.reports_cost = fields.find(usage, "cost") is not None
        self.reports_tokens = fields.find(usage, "input") is not None or fields.find(usage, "output") is not None

    def command(self, request: AgentRequest, start: AgentStart, prompt: str, environ: Mapping[str, str]) -> CommandLine:  # noqa: ARG002 - only other clients use some of these arguments
        """Return the command from the user's settings, with the arguments of this attempt."""
        words = [*self.words(), *self.extra()]
        if start.model is not None:
            words += [str(word).replace("{model}", start.model) for word in self.table.get("model_arguments", ())]
        if start.is_resumed and start.session is not None:
            words += [str(word).replace("{session}", start.session) for word in self.table.get("resume", ())]
        if self.takes_prompt_as_argument:
            words.append(prompt)
        return CommandLine(argv=tuple(words), environ={})

    def events(self, line: dict[str, Any]) -> Iterator[Event]:
        """Translate one output line into events, by the rules in the user's settings."""
        at = next((found for name in _TIMES if (found := fields.moment(line, name)) is not None), None)
        if session := fields.session(line, *_path(self.table.get("session"))):
            yield Event(kind="session", session=session)
        for name, rule in self._lines.items():
            if isinstance(rule, dict) and _fits(line, rule.get("when")):
                yield from self._translated(name, line, rule, at)

    def _translated(self, name: str, line: dict[str, Any], rule: dict[str, Any], at: float | None) -> Iterator[Event]:
        text, call = self._text(line, rule.get("text")), self._text(line, rule.get("id")) or None
        if name == "answer":
            yield Event(kind="final", at=at, agent_class="answered", text=text)
        elif name == "text":
            yield Event(kind="text", at=at, text=text, is_whole=True)
        elif name == "tool":
            yield Event(kind="reply", at=at)
            given = fields.find(line, *_path(rule.get("input")))
            yield Event(kind="tool_call", at=at, id=call, tool=self._text(line, rule.get("name")), given=given)
        elif name == "result":
            yield Event(kind="tool_result", at=at, id=call, text=text)
        elif name == "usage":
            yield Event(
                kind="usage",
                at=at,
                input_tokens=fields.whole(line, *_path(rule.get("input"))),
                output_tokens=fields.whole(line, *_path(rule.get("output"))),
                cost_usd=fields.number(line, *_path(rule.get("cost"))),
                is_total=rule.get("total") is True,
            )
        elif name == "error":
            yield Event(kind="error", at=at, text=text)
        elif name == "question":
            yield Event(kind="question", at=at, text=text)

    @staticmethod
    def _text(line: dict[str, Any], path: object) -> str:
        return fields.text(line, *_path(path)) if path else ""


def _path(path: object) -> tuple[str, ...]:
    return tuple(path.split(".")) if isinstance(path, str) and path else ("",)


def _fits(line: dict[str, Any], when: object) -> bool:
    """Return whether a JSON line has all the values that `when` names.

    If `when` is empty, no line fits.
    """
    if not isinstance(when, dict) or not when:
        return False
    return all(fields.find(line, *_path(name)) == wanted for name, wanted in when.items())

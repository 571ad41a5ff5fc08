"""Codex as a background agent: `codex exec --json`.

Codex does not mark its final answer. The answer is the last `agent_message` of a run that ended with `turn.completed`.
Three things appear only on standard error: calls of unknown tools, refused requests for more rights, and questions of
the model.
"""

from __future__ import annotations

from outlive.agents import fields
from outlive.agents.adapter import Adapter, CommandLine, Patience, class_of_status
from outlive.agents.stream_event import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from outlive.domain.agents.request import AgentRequest, AgentStart
    from outlive.domain.agents.result import AgentClass

# The types of output items that report a tool call. Each type has the names of its input fields and of its output
# fields.
_TOOLS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "command_execution": (("command",), ("aggregated_output",)),
    "file_change": (("changes",), ()),
    "mcp_tool_call": (("server", "arguments"), ("result", "error")),
    "web_search": (("query",), ()),
    "collab_tool_call": (("prompt", "receiver_thread_ids"), ("agents_states",)),
}
_QUESTION_TOOL = "request_user_input"
_BAD_REQUEST = "invalid_request_error"
_BROKEN_CALL = "codex_core::tools::router: error="
# Phrases of Codex's own error messages, each with our result class. A new version of Codex may change them. Other
# errors are recognized by the phrases that model providers use.
_SENTENCES: tuple[tuple[str, AgentClass], ...] = (
    ("ran out of room in the model's context window", "stopped"),
    ("no rollout found", "refused"),
    ("already has an active writer", "refused"),
    ("not inside a trusted directory", "refused"),
    ("is not supported when using codex", "refused"),
    ("you've hit your usage limit", "unavailable"),
    ("experiencing high demand", "unavailable"),
    ("at capacity", "unavailable"),
    ("exceeded retry limit", "unavailable"),
    ("quota exceeded", "unavailable"),
)


class Codex(Adapter):
    """The adapter of Codex."""

    name = "codex"
    provider = "openai"
    # A reasoning model may print nothing for minutes at the start. The limit is needed all the same, because without a
    # network Codex waits forever.
    patience = Patience(first_s=300.0)
    has_session_tokens = True
    session_variables = ("CODEX_THREAD_ID", "CODEX_SESSION_ID", "CODEX_TOOL_CALL_ID")

    def __init__(self, table: Any = None) -> None:
        super().__init__(table)
        self._begun: set[str] = set()
        self._is_reply_due = True

    def command(self, request: AgentRequest, start: AgentStart, prompt: str, environ: Mapping[str, str]) -> CommandLine:  # noqa: ARG002 - only other clients use some of these arguments
        """Return the command line of `codex exec`, with the prompt as standard input.

        In this mode, Codex never asks for an approval, and uses the sandbox of the user's configuration. Codex's check
        that the directory is a git repository is switched off. The check only protects a person's work from mistakes,
        so the agent gets no further rights.
        """
        words = [*self.words(), "exec", "--json", "--skip-git-repo-check"]
        if start.model is not None:
            words += ["-m", start.model]
        words += self.extra()
        if start.is_resumed and start.session is not None:
            words += ["resume", start.session]
        # Codex gives up its own retries after half a minute. An option for fewer retries would need the provider's
        # name, which only the user's configuration contains.
        return CommandLine(argv=(*words, "-"), environ={})

    def events(self, line: dict[str, Any]) -> Iterator[Event]:
        """Translate one line of Codex's `--json` output into events."""
        kind = line.get("type")
        if kind == "thread.started":
            yield Event(kind="session", session=fields.session(line, "thread_id"))
        elif kind == "turn.started":
            self._is_reply_due = True
        elif kind in ("item.started", "item.updated", "item.completed"):
            yield from self._item(line.get("item"), is_done=kind == "item.completed")
        elif kind == "error":
            yield self._error(fields.text(line, "message"))
        elif kind == "turn.failed":
            text = fields.text(line, "error", "message")
            found = self.class_of(text) or "broken"
            yield Event(kind="final", agent_class=found, text=_message(text) or "the turn failed")
        elif kind == "turn.completed":
            # The token counts of a resumed session include its earlier runs.
            yield Event(
                kind="usage",
                input_tokens=fields.whole(line, "usage", "input_tokens"),
                output_tokens=fields.whole(line, "usage", "output_tokens"),
                is_total=True,
            )
            yield Event(kind="final", agent_class="answered")

    def _item(self, item: object, *, is_done: bool) -> Iterator[Event]:
        what, call = fields.text(item, "type"), fields.text(item, "id")
        if what == "error":
            return  # an item of the type `error` is only a warning, for instance about an unknown model
        if what in ("agent_message", "reasoning", *_TOOLS) and self._is_reply_due:
            self._is_reply_due = False
            yield Event(kind="reply")
        if what in _TOOLS:
            yield from self._tool(what, item, call, is_done=is_done)
        elif what == "agent_message" and is_done:
            yield Event(kind="text", text=fields.text(item, "text"), is_whole=True)
        elif what == "reasoning" and is_done:
            yield Event(kind="thinking", text=fields.text(item, "text"))
        else:
            yield Event(kind="progress")

    def _tool(self, what: str, item: object, call: str, *, is_done: bool) -> Iterator[Event]:
        inputs, outputs = _TOOLS[what]
        tool = fields.text(item, "tool") or what
        if call not in self._begun:
            self._begun.add(call)
            given = {name: fields.find(item, name) for name in inputs}
            yield Event(kind="tool_call", id=call, tool=tool, given=given)
        if not is_done:
            return
        self._begun.discard(call)
        self._is_reply_due = True
        status = fields.text(item, "status")
        if status == "declined":
            yield Event(kind="denied", tool=tool)
        text = "\n".join(filter(None, (_plain(fields.find(item, name)) for name in outputs)))
        yield Event(kind="tool_result", id=call, text=text, is_error=status in ("failed", "declined"))

    def _error(self, text: str) -> Event:
        """Translate an error line into a retry event or an error event.

        The run may go on after both. Only a `turn.failed` line ends the run.
        """
        waits = text.startswith("Reconnecting") or "waiting for network" in text.lower()
        return Event(kind="retry" if waits else "error", text=_message(text), agent_class=self.class_of(text))

    def remarks(self, text: str) -> Iterator[Event]:
        """Translate one line of Codex's standard error into events."""
        if _BROKEN_CALL in text:
            yield from self._broken_call(text.partition(_BROKEN_CALL)[2])
        elif "waiting for network" in text.lower():
            yield Event(kind="retry", text=text, agent_class="unavailable")
        elif any(sentence in text.lower() for sentence, _ in _SENTENCES) or text.startswith("Error: "):
            yield Event(kind="error", text=text, agent_class=self.class_of(text))

    def _broken_call(self, error: str) -> Iterator[Event]:
        """Translate a failed tool call into events.

        Codex reports such a call only on standard error.
        """
        if self._is_reply_due:
            yield Event(kind="reply")
        self._is_reply_due = True
        is_question = error.startswith(_QUESTION_TOOL)
        tool = _QUESTION_TOOL if is_question else "command_execution" if "command" in error else "?"
        yield Event(kind="tool_call", tool=tool, given=error)
        if is_question:
            yield Event(kind="question")  # this line does not contain the question, but the model repeats it as text
        elif "approval policy is Never" in error or "rejected" in error or "denied" in error:
            yield Event(kind="denied", tool=tool)

    def class_of(self, error: str) -> AgentClass | None:
        """Return the result class that an error message stands for, such as `refused`.

        The class is recognized by a phrase of Codex, by an HTTP status, or by the phrases of model providers.
        """
        lower = error.lower()
        found = next((each for sentence, each in _SENTENCES if sentence in lower), None)
        digits = lower.partition("status ")[2].removeprefix("code ")[:3]
        status = class_of_status(int(digits)) if digits.isascii() and digits.isdecimal() else None
        words = super().class_of(error)
        if fields.text(_body(error), "error", "type") == _BAD_REQUEST and words != "stopped":
            # The message of a bad request may name a parameter such as `timeout`. Without this check, that word would
            # be taken for a network error.
            words = "refused"
        return found or status or words


def _body(error: str) -> dict[str, Any] | None:
    """Return the JSON object that an error text is. Return None for any other text."""
    return fields.parse_line(error.encode()) if error.startswith("{") else None


def _message(error: str) -> str:
    """Return the readable message in an error text.

    If the text is a JSON response body, the message is a field of it. Any other text is returned unchanged.
    """
    body = _body(error)
    return fields.text(body, "error", "message") or fields.text(body, "message") or fields.text(body, "detail") or error


def _plain(output: object) -> str:
    """Return the text of a tool's output.

    The output is a string, an error object, or the list of objects that an MCP tool returns.
    """
    if isinstance(output, str):
        return output
    parts = "\n".join(fields.text(part, "text") for part in fields.items(output, "content"))
    return parts or fields.text(output, "message")

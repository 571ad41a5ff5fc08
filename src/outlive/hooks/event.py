"""Events of a client and answers to them, in one form for all clients."""

from __future__ import annotations

import os

from outlive.domain.errors import UserError
from outlive.domain.sessions.session import SOURCES
from outlive.domain.value import Value
from outlive.hooks.clients.payload import path, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal

    from outlive.domain.sessions.client_task import ClientReport
    from outlive.domain.sessions.session import Source

    WokenBy = Literal["nobody", "hook", "queue", "nudge"]
    Kind = Literal["begin", "end", "prompt", "tool", "results", "stop", "compact", "wake"]
    Put = Callable[["Answer"], None]

# If a text is longer, a client writes the text to a file and shows the model only the beginning of the text.
LONGEST_CONTEXT = 9_900
# The beginning of a message that Outlive sends to an idle session as a prompt.
POKE = "[outlive wakes "


class Event(Value):
    """One event of a session, of one of the following kinds.

    - `begin`, `end`: the session's boundaries.
    - `prompt`: the session gets a prompt.
    - `tool`: the session is about to use a tool.
    - `results`: the model is about to read the results of its tools.
    - `stop`: the turn is over.
    - `compact`: the session's history is about to be summarised.
    - `wake`: the session is idle and can be woken.
    """

    client: str
    kind: Kind
    session: str
    cwd: str
    is_sub_agent: bool = False
    """Whether a sub-agent caused the event.

    A sub-agent shares its parent's session, but gets and confirms no notices.
    """
    is_turn: bool = False
    """Whether the event shows that the model has read every notice that was presented before the event."""
    source: Source = "startup"
    is_unheard: bool = False
    """Whether the client does not show the hook's answer to its model. Then the hand-off is given at the next prompt.
    """
    continues: str | None = None
    """The client's name for the session that this session continues."""
    reason: str | None = None
    transcript: str | None = None
    summary_mark: bytes = b""
    """The text that the client writes to its transcript at a compaction.

    Empty if the client reports compactions by an event.
    """
    kept: str | None = None
    """The notices that the session's history contains, as text.

    This is used only if the client has no transcript file that Outlive can read.
    """
    process: int | None = None
    """The process id of the client."""
    shares_process: bool = False
    """Whether the client's process may have several sessions at a time, each with its own name."""
    lets_go: bool = False
    """Whether an `end` event counts only if the client's process exits.

    If the process goes on, the session continues.
    """
    is_again: bool = False
    """Whether this turn continues because a hook blocked its previous stop."""
    most_blocks: int = 8
    """How many stops in a row a hook may block in this client."""
    woken_by: WokenBy = "nobody"
    """How Outlive makes an idle session take a turn.

    - `hook`: by a hook that the client keeps running.
    - `queue`: by a message that is queued for the session.
    - `nudge`: by a signal without content, after which the session asks for its notices.
    - `nobody`: not possible, because the session ends with its turn or the client has no way to be woken.
    """
    is_headless: bool = False
    """Whether the client is known to exit after this turn, without another prompt."""
    waits_itself: bool = False
    """Whether the client runs `outlive wait` as its own background command.

    When that command ends, the client notifies its model.
    """
    keeps_messages: bool = False
    """Whether a queued message survives the client's exit.

    Such a message may arrive after the notices were presented in another way.
    """
    text: str = ""
    """The text of the prompt. Empty if the event has no prompt."""
    tool: str = ""
    tool_input: Mapping[str, Any] = {}
    command: str | None = None
    """The shell command that the tool is about to run."""
    is_background: bool = False
    """Whether the client is asked to run `command` as a background command of the client."""
    edits: tuple[str, ...] = ()
    """Files that the client's own tools have changed, or for the kind `tool`, files that they are about to change."""
    reads: tuple[str, ...] = ()
    """Files and directories that the client's own tools are about to read. Only events of the kind `tool` have them."""
    foreign: tuple[ClientReport, ...] = ()
    """Background tasks that the client runs itself."""
    foreign_are_all: bool = False
    """Whether `foreign` has all running tasks of the client. Then a recorded task that is not in `foreign` has ended.
    """
    asks_nobody: bool = False
    """Whether the client runs every command without asking the person for permission."""


class Answer(Value):
    """The answer of a hook."""

    context: str = ""
    """Text that the model gets together with its next input."""
    block: str = ""
    """The reason why the session must not stop. The model reads it."""
    tool_input: Mapping[str, Any] | None = None
    """The input for the tool. The client uses it instead of the model's input."""
    note: str = ""
    """One line that the client shows to the person."""
    wake: str = ""
    """Text for the model of an idle session. With this text, the client starts a turn."""
    look_file: str = ""
    """The path of a file. A process writes to this file to ask the client to look for its child sessions."""
    given_up: tuple[str, ...] = ()
    """The child sessions whose loss was reported to the model. The client need not look for them any more."""


def cut(text: str) -> str:
    """Shorten a text to the length that a client passes to its model."""
    return text if len(text) <= LONGEST_CONTEXT else text[: LONGEST_CONTEXT - 1] + "…"


def as_told(client: str, kind: Kind, payload: Mapping[str, Any], shell: str) -> Event:
    """Return an event with those payload fields that all clients name alike.

    `shell` is the client's name for its shell tool. A field of the wrong type counts as missing. If the payload has no
    directory, the event gets the hook's working directory. Raises `UserError` if the payload names no session.
    """
    given, source = payload.get("tool_input"), payload.get("source")
    tool_input = given if isinstance(given, dict) else {}
    tool = text(payload, "tool_name") or ""
    session = text(payload, "session_id")
    if session is None:
        raise UserError("the payload names no session", "a client must give its name in `session_id`, as text")
    return Event(
        client=client,
        kind=kind,
        session=session,
        cwd=path(payload, "cwd") or os.getcwd(),
        source=source if source in SOURCES else "startup",
        reason=text(payload, "reason"),
        transcript=path(payload, "transcript_path"),
        is_again=bool(payload.get("stop_hook_active")),
        text=text(payload, "prompt") or "",
        tool=tool,
        tool_input=tool_input,
        command=_command(tool_input) if tool == shell else None,
    )


def _command(tool_input: Mapping[str, Any]) -> str | None:
    """Return the shell command in the input of a tool, or None if there is none."""
    given = tool_input.get("command")
    return given if isinstance(given, str) else None


def reads_of(event: Event, readers: tuple[str, ...], *names: str) -> tuple[str, ...]:
    """Return the path that a tool call is about to read.

    The result is empty if the event is not a call of one of the tools in `readers`. The path is in one of the tool's
    input fields `names`. If the call has none of these fields, the tool reads the directory in which it runs, and the
    result is `.`.
    """
    if event.kind != "tool" or event.tool not in readers:
        return ()
    named = (event.tool_input.get(name) for name in names)
    return (next((path for path in named if isinstance(path, str) and path), "."),)


def as_read(name: str, answer: Answer, tool_input: str) -> dict[str, object]:
    """Convert an answer to Claude Code's JSON.

    `tool_input` is the name of the JSON field for a changed tool input.
    """
    document: dict[str, object] = {}
    if answer.block:
        document.update(decision="block", reason=cut(answer.block))
    if answer.note:
        document["systemMessage"] = answer.note
    specific: dict[str, object] = {}
    if answer.context:
        specific["additionalContext"] = cut(answer.context)
    if answer.tool_input is not None:
        specific[tool_input] = dict(answer.tool_input)
    if specific:
        document["hookSpecificOutput"] = {"hookEventName": name, **specific}
    return document


def as_reason(answer: Answer) -> Answer:
    """Return an answer that blocks the stop, with the text for the model as reason.

    Codex and Gemini CLI continue a turn only if the hook blocks the stop.
    """
    return answer.but(block=answer.context, context="") if answer.context else answer

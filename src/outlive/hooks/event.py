"""Events of a client and the hook's replies to them, in one form for all clients."""

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

# A client writes a longer text to a file, and shows the model only its beginning.
LONGEST_CONTEXT = 9_900
# The beginning of the prompt with which Outlive wakes an idle session.
POKE = "[outlive wakes "


class Event(Value):
    """One event of a session, of one of the following kinds.

    - `begin`: the session begins or continues.
    - `end`: the session ends.
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

    A sub-agent belongs to its parent's session, but it is not given notices and confirms none.
    """
    is_turn: bool = False
    """Whether the event shows that the model has read all notices that were presented before it."""
    source: Source = "startup"
    is_unheard: bool = False
    """Whether the client does not show the hook's reply to its model. Then the hand-off is given at the next prompt."""
    continues: str | None = None
    """The client's name for the earlier session that this session continues."""
    reason: str | None = None
    transcript: str | None = None
    summary_mark: bytes = b""
    """A text that the client writes into its transcript when it summarizes the history.

    Empty if the client reports this by an event.
    """
    kept: str | None = None
    """The notices in the session's history, as text.

    This is used only if the client has no transcript file that Outlive can read.
    """
    process: int | None = None
    """The process id of the client, or None if it is not known."""
    shares_process: bool = False
    """Whether one process of the client may run several sessions at once, each with its own name."""
    lets_go: bool = False
    """Whether an `end` event counts only if the client's process exits afterwards.

    If the process keeps running, the session has not ended.
    """
    is_again: bool = False
    """Whether this turn goes on because a hook did not let the session stop before."""
    most_blocks: int = 8
    """How many times in a row a hook of this client may keep the session from stopping."""
    woken_by: WokenBy = "nobody"
    """How Outlive can make an idle session start a turn.

    - `hook`: by a hook that the client keeps running.
    - `queue`: by a message that is queued for the session.
    - `nudge`: by a signal without content, after which the session asks for its notices.
    - `nobody`: not possible, because the session ends with its turn or the client has no way to be woken.
    """
    is_headless: bool = False
    """Whether the client exits after this turn, without another prompt. False if this is not known."""
    waits_itself: bool = False
    """Whether the client runs `outlive wait` as its own background command.

    When that command ends, the client notifies its model.
    """
    keeps_messages: bool = False
    """Whether a message in the client's queue is still there after the client has exited.

    Such a message may arrive after its notices were presented in another way.
    """
    text: str = ""
    """The text of the prompt. Empty if the event has no prompt."""
    tool: str = ""
    tool_input: Mapping[str, Any] = {}
    command: str | None = None
    """The shell command that the tool is about to run."""
    is_background: bool = False
    """Whether the client will run `command` as a background command."""
    edits: tuple[str, ...] = ()
    """The files that the client's own tools have changed. For the kind `tool`, the files that a tool is about to
    change.
    """
    reads: tuple[str, ...] = ()
    """The files and directories that the client's own tools are about to read. Only events of the kind `tool` have
    them.
    """
    foreign: tuple[ClientReport, ...] = ()
    """The background commands that the client itself runs, without Outlive."""
    foreign_are_all: bool = False
    """Whether `foreign` has all background commands that the client runs. Then every other recorded command has ended.
    """
    asks_nobody: bool = False
    """Whether the client runs every command without asking the user for permission."""


class Answer(Value):
    """What a hook replies to the client."""

    context: str = ""
    """A text that the client gives to the model together with its next input."""
    block: str = ""
    """The reason why the session must not stop. The model reads it."""
    tool_input: Mapping[str, Any] | None = None
    """A changed input for the tool. The client uses it instead of the model's input."""
    note: str = ""
    """One line that the client shows to the user."""
    wake: str = ""
    """A text for the model of an idle session. The client starts a turn with this text."""
    look_file: str = ""
    """The path of a file. Outlive writes to it to ask the client to look for its child sessions."""
    given_up: tuple[str, ...] = ()
    """The lost child sessions whose loss was reported to the model. The client need not look for them any more."""


def cut(text: str) -> str:
    """Shorten a text to the length that clients pass on to the model."""
    return text if len(text) <= LONGEST_CONTEXT else text[: LONGEST_CONTEXT - 1] + "…"


def as_told(client: str, kind: Kind, payload: Mapping[str, Any], shell: str) -> Event:
    """Return an event with the input fields that have the same name in all clients.

    `shell` is the client's name for its shell tool. A field of a wrong type is ignored. If the input has no directory,
    the event gets the hook's working directory. Raises `UserError` if the input names no session.
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
    """Return the path that a tool call is about to read, as a tuple.

    It is empty if the tool is not one of `readers`. The path is in one of the tool's input fields `names`. Without such
    a field, the tool reads its current directory, and the result is `.`.
    """
    if event.kind != "tool" or event.tool not in readers:
        return ()
    named = (event.tool_input.get(name) for name in names)
    return (next((path for path in named if isinstance(path, str) and path), "."),)


def as_read(name: str, answer: Answer, tool_input: str) -> dict[str, object]:
    """Convert a hook's reply to the JSON that Claude Code reads.

    `tool_input` is the JSON field for a changed tool input.
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
    """Return a reply that blocks the stop, with the text for the model as the reason.

    Codex and Gemini CLI continue a turn only if the hook blocks the stop.
    """
    return answer.but(block=answer.context, context="") if answer.context else answer

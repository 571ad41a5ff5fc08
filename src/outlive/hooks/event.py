"""What happened in a client, and what it is answered: the same words for every client."""

from __future__ import annotations

from outlive.domain.session import SOURCES
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal

    from outlive.domain.foreign import Seen
    from outlive.domain.session import Source

    WokenBy = Literal["nobody", "hook", "queue", "nudge"]
    Kind = Literal["begin", "end", "prompt", "tool", "results", "stop", "compact", "wake"]
    Put = Callable[["Answer"], None]

# A client that is given more puts it into a file, and shows the model its beginning.
LONGEST_CONTEXT = 9_900
# How a message begins that we send to an idle session for a prompt.
POKE = "[outlive wakes "


class Event(Value):
    """One event of a session.

    `begin` and `end` are its boundaries; `prompt`: somebody asks it something; `tool`: it is about to
    use a tool; `results`: the model is about to read what its tools said; `stop`: its turn is over;
    `compact`: its history is about to be summarised; `wake`: it is idle, and can be woken.
    """

    client: str
    kind: Kind
    session: str
    cwd: str
    is_sub_agent: bool = False
    """Sub-agents share the session of their parent: they are told nothing, and confirm nothing."""
    is_turn: bool = False
    """Whether it shows that the model has read what was put before it until now."""
    source: Source = "startup"
    is_unheard: bool = False
    """Whether the client keeps what is answered from its model: a beginning is then told with the next prompt."""
    continues: str | None = None
    """The session that it goes on from, by the client's own word."""
    reason: str | None = None
    transcript: str | None = None
    summary_mark: bytes = b""
    """What is added to its transcript when a summary takes the place of its history, where no event tells of that."""
    kept: str | None = None
    """What its history shows of what we have said, where that is no file that we could read."""
    process: int | None = None
    """The client's process."""
    shares_process: bool = False
    """Whether that process has several sessions at a time, each of which keeps its name for good."""
    lets_go: bool = False
    """It is over if its client's process ends now; otherwise the client only begins anew with it."""
    is_again: bool = False
    """Whether its turn goes on because we did not let it stop before."""
    most_blocks: int = 8
    """How often in a row the client lets a stop be blocked."""
    woken_by: WokenBy = "nobody"
    """Who makes it take a turn when it is idle: a hook that its client keeps running, a message that is queued for it,
    a nudge after which it asks what there is, or nobody, because it is over when its turn is."""
    keeps_messages: bool = False
    """Whether a message that was sent to it may come after it was killed and goes on, when all has been told."""
    text: str = ""
    """What it was asked."""
    tool: str = ""
    tool_input: Mapping[str, Any] = {}
    command: str | None = None
    """The text that its tool is about to give to a shell."""
    is_background: bool = False
    """Whether that is to go on in the background of the client."""
    edits: tuple[str, ...] = ()
    """Files that its own tools have changed, or before that, are about to change."""
    reads: tuple[str, ...] = ()
    """Files and directories that its own tools are about to look at; it matters to nobody afterwards."""
    foreign: tuple[Seen, ...] = ()
    """What the client runs in the background by itself."""
    foreign_are_all: bool = False
    asks_nobody: bool = False
    """Whether the client runs every command without asking and without rules."""


class Answer(Value):
    """What a hook says."""

    context: str = ""
    """For the model, beside what it reads next."""
    block: str = ""
    """Why it must not stop, for the model."""
    tool_input: Mapping[str, Any] | None = None
    """What the tool is given instead."""
    note: str = ""
    """For the person, in one line."""
    wake: str = ""
    """For the model of a session that is idle."""


def cut(text: str) -> str:
    """The text as a client takes it whole."""
    return text if len(text) <= LONGEST_CONTEXT else text[: LONGEST_CONTEXT - 1] + "…"


def as_told(client: str, kind: Kind, payload: Mapping[str, Any], shell: str) -> Event:
    """The event with what all of these clients tell in the same words; `shell` is the tool that takes commands."""
    given, source = payload.get("tool_input"), payload.get("source")
    tool_input = given if isinstance(given, dict) else {}
    command = tool_input.get("command") if payload.get("tool_name") == shell else None
    return Event(
        client=client,
        kind=kind,
        session=str(payload["session_id"]),
        cwd=str(payload["cwd"]),
        source=source if source in SOURCES else "startup",
        reason=payload.get("reason"),
        transcript=payload.get("transcript_path"),
        is_again=bool(payload.get("stop_hook_active")),
        text=str(payload.get("prompt", "")),
        tool=str(payload.get("tool_name", "")),
        tool_input=tool_input,
        command=command if isinstance(command, str) else None,
    )


def reads_of(event: Event, readers: tuple[str, ...], *names: str) -> tuple[str, ...]:
    """What one of these tools is about to look at, by what they call it; a search that names nothing, where it runs."""
    if event.kind != "tool" or event.tool not in readers:
        return ()
    named = (event.tool_input.get(name) for name in names)
    return (next((path for path in named if isinstance(path, str) and path), "."),)


def as_read(name: str, answer: Answer, tool_input: str) -> dict[str, object]:
    """The answer as all of these clients read it; `tool_input` is what the tool's other input is called."""
    said: dict[str, object] = {}
    if answer.block:
        said.update(decision="block", reason=cut(answer.block))
    if answer.note:
        said["systemMessage"] = answer.note
    specific: dict[str, object] = {}
    if answer.context:
        specific["additionalContext"] = cut(answer.context)
    if answer.tool_input is not None:
        specific[tool_input] = dict(answer.tool_input)
    if specific:
        said["hookSpecificOutput"] = {"hookEventName": name, **specific}
    return said


def as_reason(answer: Answer) -> Answer:
    """The answer to the end of a turn for a client whose turns go on only for a reason."""
    return answer.but(block=answer.context, context="") if answer.context else answer

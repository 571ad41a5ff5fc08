"""The entries of a transcript, made from the events of all attempts of an agent.

An entry's number is its position in the order of arrival, through all attempts. So the number does not change while the
output grows. `in_order` sorts entries by time, to show them to users.
"""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Literal

    from outlive.agents.stream_event import Event

    Role = Literal["user", "assistant", "tool", "system"]
    EntryKind = Literal[
        "begin",  # an attempt of the task begins
        "prompt",
        "text",
        "thinking",
        "question",
        "tool_call",
        "tool_result",
        "denied",
        "retry",
        "error",
        "dropped",  # a part of the attempt's output is missing
        "end",  # an attempt of the task has ended
    ]

WORDS = ("begin", "prompt", "text", "question", "dropped", "end")
"""The kinds of entries that are shown if the user does not ask for tool calls."""


class Entry(Value):
    """One entry of a transcript, such as a text or a tool call."""

    number: int
    """The entry's position in the order of arrival, counted from 1 through all attempts."""
    attempt: int
    role: Role
    kind: EntryKind
    at: float | None = None
    """The time in seconds since 1970. None if the client prints no time."""
    text: str = ""
    tool: str | None = None
    given: object = None
    """The input of a tool call."""
    result: str | None = None
    """The output of a tool."""
    call: int | None = None
    """The number of the entry with the tool call, if this entry is the call's result."""
    is_error: bool = False
    is_sub_agent: bool = False
    is_partial: bool = False
    """Whether the client may still add text to this entry."""
    agent: Mapping[str, Any] | None = None
    """Only for the entries that begin or end an attempt: client, model, session, result class and state."""
    is_fixed: bool = False
    """Whether sorting by time leaves this entry in place, and moves no other entry to its other side."""

    @property
    def is_shown_without_tools(self) -> bool:
        """Whether the entry is shown if the user does not ask for tool calls."""
        return self.kind in WORDS and not self.is_sub_agent


class EntryReader:
    """The transcript entries of a task so far.

    The caller passes the attempts and their events in the order of arrival.
    """

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._parts: list[str] = []
        """The text pieces of the last entry. Empty if the client cannot add another piece to that entry."""
        self._attempt = 0
        self._begin = 0
        self._prompt: str | None = None
        self._words: tuple[str, ...] = ()
        """The agent's newest text, and the last piece of it. A final answer that is equal to one of them is only a
        repetition.
        """
        self._calls: dict[str, int] = {}
        self._denied: set[str] = set()

    @property
    def complete(self) -> int:
        """The number of entries whose text is complete."""
        return len(self._entries) - bool(self._parts)

    @property
    def entries(self) -> list[Entry]:
        """All entries so far, in the order of arrival."""
        if not self._parts:
            return list(self._entries)
        return [*self._entries[:-1], self._entries[-1].but(text="".join(self._parts), is_partial=True)]

    def complete_after(self, number: int) -> list[Entry]:
        """Return the complete entries that follow entry `number`, in the order of arrival."""
        return self._entries[number : self.complete]

    def begin(self, attempt: int, at: float | None, prompt: str | None) -> None:
        """Add the entries for the beginning of an attempt: a system entry and the prompt."""
        self._attempt, self._words, self._prompt = attempt, (), prompt
        self._calls, self._denied = {}, set()
        self._begin = self._add(role="system", kind="begin", at=at, is_fixed=True)
        if prompt is not None:
            self._add(role="user", kind="prompt", at=at, text=prompt, is_fixed=True)

    def describe(self, text: str, agent: Mapping[str, Any]) -> None:
        """Set the text and the agent's details in the entry that begins the attempt."""
        self._entries[self._begin - 1] = self._entries[self._begin - 1].but(text=text, agent=agent)

    def end(self, at: float | None, text: str, agent: Mapping[str, Any], *, is_error: bool) -> None:
        """Add the system entry that ends the attempt."""
        self._close()
        self._add(role="system", kind="end", at=at, text=text, agent=agent, is_error=is_error, is_fixed=True)

    def dropped(self, text: str) -> None:
        """Add an entry that says that a part of the output is missing."""
        self._close()
        self._add(role="system", kind="dropped", text=text, is_fixed=True)

    def take(self, event: Event) -> None:
        """Add the entries for one event of the attempt."""
        handler = getattr(self, f"_take_{event.kind}", None)
        if handler is not None:
            handler(event)

    def _add(self, **fields: Any) -> int:
        self._entries.append(Entry(number=len(self._entries) + 1, attempt=self._attempt, **fields))
        return len(self._entries)

    def _close(self) -> None:
        """Mark the text of the last entry as complete, because another event has followed."""
        if self._parts:
            last, piece = self._entries[-1].but(text="".join(self._parts)), self._parts[-1]
            self._entries[-1], self._parts = last, []
            if not last.is_sub_agent:
                self._words = (last.text.strip(), piece.strip())

    def _take_reply(self, event: Event) -> None:
        if not event.is_aside:
            self._close()

    def _take_text(self, event: Event) -> None:
        last = self._entries[-1]
        if self._parts and not event.is_whole and last.is_sub_agent == event.is_aside:
            self._parts.append(event.text)
            if last.at is None:
                self._entries[-1] = last.but(at=event.at)
            return
        if not event.text.strip():
            return
        self._close()
        self._add(role="assistant", kind="text", at=event.at, is_sub_agent=event.is_aside)
        self._parts = [event.text]
        if event.is_whole:
            self._close()

    def _take_thinking(self, event: Event) -> None:
        if event.text.strip():
            self._close()
            self._add(role="assistant", kind="thinking", at=event.at, text=event.text, is_sub_agent=event.is_aside)

    def _take_prompt(self, event: Event) -> None:
        self._close()
        if self._prompt is not None and event.text.strip() == self._prompt.strip():
            self._prompt = None  # Outlive has added this prompt already, and the client only prints it again
            return
        self._add(role="user", kind="prompt", at=event.at, text=event.text, is_sub_agent=event.is_aside)

    def _take_tool_call(self, event: Event) -> None:
        self._close()
        number = self._add(
            role="assistant",
            kind="tool_call",
            at=event.at,
            tool=event.tool or "?",
            given=event.given,
            is_sub_agent=event.is_aside,
        )
        if event.id:
            self._calls[event.id] = number

    def _take_tool_result(self, event: Event) -> None:
        self._close()
        call = self._calls.get(event.id or "")
        self._add(
            role="tool",
            kind="tool_result",
            at=event.at,
            tool=event.tool or (None if call is None else self._entries[call - 1].tool),
            result=event.text,
            call=call,
            is_error=event.is_error,
            is_sub_agent=event.is_aside,
        )

    def _take_question(self, event: Event) -> None:
        self._close()
        self._add(role="assistant", kind="question", at=event.at, text=event.text, is_sub_agent=event.is_aside)

    def _take_denied(self, event: Event) -> None:
        # A client reports a denied tool when the tool is called, and again at the end of the run. Add only one entry.
        tool = event.tool or "?"
        if tool not in self._denied:
            self._denied.add(tool)
            self._close()
            self._add(role="system", kind="denied", at=event.at, tool=tool, text=f"{tool} was not allowed")

    def _take_retry(self, event: Event) -> None:
        self._close()
        self._add(role="system", kind="retry", at=event.at, text=event.text, is_error=True)

    def _take_error(self, event: Event) -> None:
        self._close()
        self._add(role="system", kind="error", at=event.at, text=event.text, is_error=True)

    def _take_final(self, event: Event) -> None:
        self._close()
        text = event.text.strip()
        if event.agent_class != "answered":
            if text:
                self._take_error(event)
        elif text and text not in self._words:  # most clients only print their last message again here
            self._add(role="assistant", kind="text", at=event.at, text=event.text)
            self._words = (text,)


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Return entries sorted by time.

    `entries` are in the order of arrival. Entries with equal times stay in this order. An entry without a time stays
    where it is, and no other entry moves across it. A tool's result always stays behind the tool's call, even if its
    time is earlier.
    """
    ordered: list[Entry] = []
    timed: list[tuple[float, int, Entry]] = []
    moments: dict[int, float] = {}
    for entry in entries:
        if entry.is_fixed or entry.at is None:
            ordered += [each for _, _, each in sorted(timed, key=lambda one: one[:2])]
            ordered.append(entry)
            timed = []
            continue
        moments[entry.number] = max(entry.at, moments.get(entry.call or 0, entry.at))
        timed.append((moments[entry.number], entry.number, entry))
    return ordered + [each for _, _, each in sorted(timed, key=lambda one: one[:2])]

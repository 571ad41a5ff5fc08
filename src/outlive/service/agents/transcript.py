"""The transcript of an agent task: the messages of the user, the model and tools.

Outlive reads the transcript from the stored output of the client, and not from the client's own session. So the
transcript is available as long as the record of the task, however the task ended.
"""

from __future__ import annotations

from outlive.agents.find_adapter import reader_of
from outlive.agents.transcript_entries import EntryReader, in_order
from outlive.bundle.agent_files import prompt_file, read_prompt, read_start
from outlive.bundle.output import size_of
from outlive.domain.agents.request import AgentStart
from outlive.domain.errors import UserError
from outlive.domain.notices.notice_text import how_it_ended
from outlive.domain.text.redact import may_begin_secret
from outlive.domain.text.sanitize import from_json, one_line, shown, to_json
from outlive.domain.text.units import show_size
from outlive.domain.timestamps import from_micros, iso, to_micros
from outlive.domain.value import Value
from outlive.linux.reader_gone import has_departed
from outlive.service.tasks.follow_output import follow
from outlive.service.tasks.output import files_with_output, pieces_of
from outlive.service.tasks.read import files_of, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from outlive.agents.stream import StreamReader
    from outlive.agents.transcript_entries import Entry
    from outlive.bundle.attempt import AttemptFiles
    from outlive.bundle.home import Home
    from outlive.bundle.output import Piece
    from outlive.domain.agents.request import AgentRequest
    from outlive.domain.tasks.task import Attempt, Task
    from outlive.service.maintenance.reconcile import Adopter

_WIDE = 300
# If the input of a tool has more nested levels than this, it is not shown, because the functions that handle it are
# recursive and could exceed Python's recursion limit.
_MOST_LEVELS = 100
# In place of output that was dropped, the reader gets this NUL byte. Otherwise the two lines around the gap would be
# joined to one wrong line.
_CUT = b"\0"


class Transcript(Value):
    """A part of the transcript of a task."""

    entries: tuple[Entry, ...]
    """The entries, ordered by time."""
    next: int
    """The number of the last complete entry.

    The next call uses this number as `since`, to get only later entries.
    """
    more: bool
    """Whether entries after `since` were left out because only the last entries were wanted."""


def request_of(task: Task) -> AgentRequest:
    """Return the request of an agent task.

    Raises `UserError` if the task is not an agent.
    """
    if task.launch.agent is None:
        raise UserError(
            f"task {task.id} is a command, and only agents have a transcript",
            f"`outlive output {task.id}` shows the output of the command",
        )
    return task.launch.agent


def read_transcript(
    home: Home, task: Task, *, since: int = 0, last: int | None = None, with_tools: bool = False
) -> Transcript:
    """Return the entries written so far whose number is greater than `since`."""
    request, reader = request_of(task), EntryReader()
    for attempt in task.attempts:
        _AttemptReading(home, task, request, attempt, reader).read()
    wanted = [each for each in in_order(reader.entries) if _is_wanted(each, since, with_tools=with_tools)]
    left_out = 0 if last is None else max(0, len(wanted) - last)
    return Transcript(entries=tuple(wanted[left_out:]), next=max(reader.complete, since), more=left_out > 0)


def follow_transcript(
    home: Home,
    task: Task,
    *,
    since: int = 0,
    last: int | None = None,
    with_tools: bool = False,
    adopter: Adopter | None,
    departures: int | None = None,
) -> Iterator[Sequence[Entry]]:
    """Yield the entries of a transcript when they are complete, until the task ends.

    This function also returns when the descriptor `departures` becomes readable, because the reader has gone away.
    Entries are numbered in the order of their arrival, and their numbers never change. So an entry that arrives late
    is yielded late, even if its time is before that of other entries.
    """
    if last is not None:
        found = read_transcript(home, task, since=since, last=last, with_tools=with_tools)
        yield [entry for entry in found.entries if not entry.is_partial]
        since = found.next
    request, reader, told = request_of(task), EntryReader(), since

    def complete_ones() -> list[Entry]:
        nonlocal told
        found, told = reader.complete_after(told), max(told, reader.complete)
        return [each for each in in_order(found) if _is_wanted(each, since, with_tools=with_tools)]

    number = 1
    while number <= len(task.attempts):
        reading = _AttemptReading(home, task, request, task.attempts[number - 1], reader)
        if task.attempts[number - 1].settled_at is None:
            files = files_with_output(home, task, number)
            for piece in follow(home, task, files, 0, adopter=adopter, departures=departures):
                reading.feed(piece)
                if not piece.content:
                    reading.describe()
                    yield complete_ones()
            if has_departed(departures):
                return
            task = find(home, [task.id], adopter)[0]
            reading.end(task.attempts[number - 1])
        else:
            reading.read()
        yield complete_ones()
        number += 1


class _AttemptReading:
    """A reader that adds the output of one attempt to a transcript.

    The caller has read all earlier attempts before.
    """

    def __init__(self, home: Home, task: Task, request: AgentRequest, attempt: Attempt, reader: EntryReader) -> None:
        self._attempt = attempt
        self._entries = reader
        self._files = files_of(home, task, attempt.number)
        self._start = read_start(self._files) or _start_on_record(request, attempt)
        self._stream: StreamReader = reader_of(request, self._start, reader.take)
        created = to_micros(attempt.created_at) / 1_000_000
        reader.begin(attempt.number, created, _prompt_of(self._files))
        self.describe()

    def read(self) -> None:
        """Read the output written so far, at most until the end of the attempt.

        Output that a process writes after the end does not belong to the attempt, and would change the numbers of later
        entries.
        """
        attempt = self._attempt
        end = size_of(self._files) if attempt.output_bytes is None else attempt.output_bytes
        for piece in pieces_of(self._files, 0, None):
            if piece.start < end:
                self.feed(piece.but(content=piece.content[: end - piece.start]))
        if attempt.settled_at is not None:
            self.end(attempt)
        else:
            self.describe()

    def feed(self, piece: Piece) -> None:
        """Read the next piece of the output."""
        if piece.dropped_before:
            self._stream.feed(_CUT)
            self._entries.dropped(f"{show_size(piece.dropped_before)} of output were dropped here")
        if piece.restarted:
            self._stream.feed(_CUT)
            self._entries.dropped("the client truncated its own output, so its earlier output is lost")
        self._stream.feed(piece.content)

    def end(self, attempt: Attempt) -> None:
        """Add the last entry of an attempt that has been settled."""
        self._attempt = attempt
        self._stream.finish()
        found, how = attempt.agent, how_it_ended(attempt)
        if found is not None and found.agent_class is not None:
            how += f", {found.agent_class}"
        why = None if found is None else found.question or found.error
        ended = attempt.ended_at or attempt.settled_at
        self._entries.end(
            None if ended is None else to_micros(ended) / 1_000_000,
            f"attempt {attempt.number}: {how}{f': {why}' if why else ''}",
            self._agent(),
            is_error=attempt.state != "succeeded",
        )
        self.describe()

    def describe(self) -> None:
        """Set the text of the first entry, which describes the attempt.

        The text has the client, the model, the session, and how the attempt ended.
        """
        agent = self._agent()
        client, model, session = (agent[name] for name in ("client", "model", "session"))
        text = f"attempt {self._attempt.number}: {client}"
        text += f", model {model}" if model else ""
        text += f", session {session}" if session else ""
        self._entries.describe(f"{text}; {how_it_ended(self._attempt)}", agent)

    def _agent(self) -> dict[str, Any]:
        """Return the client, model and session of the attempt, and how it ended."""
        found = self._attempt.agent
        return {
            "client": self._start.client,
            "model": self._stream.model or (found and found.model) or self._start.model,
            "session": self._stream.session or (found and found.session),
            "class": found and found.agent_class,
            "state": self._attempt.state,
        }


def _start_on_record(request: AgentRequest, attempt: Attempt) -> AgentStart:
    """Return the client, model and session of an attempt from its row in the ledger.

    The row is used if the files of the attempt do not contain these values.
    """
    if attempt.agent is not None:
        return AgentStart(client=attempt.agent.client, model=attempt.agent.asked, session=attempt.agent.session)
    first = request.candidates[0]
    return AgentStart(client=first.client, model=first.model)


def _prompt_of(files: AttemptFiles) -> str | None:
    """Return the prompt that the client was given, or None if it is not stored."""
    try:
        with open(prompt_file(files), "rb") as file:
            return file.read().decode("utf-8", "surrogateescape")
    except OSError:
        pass
    try:
        return read_prompt(files.bundle) if files.number == 1 else None
    except OSError:
        return None


def _is_wanted(entry: Entry, since: int, *, with_tools: bool) -> bool:
    return entry.number > since and (with_tools or entry.is_shown_without_tools)


def transcript_document(task: Task, found: Transcript) -> dict[str, Any]:
    """Return a transcript as JSON, with secrets masked and hidden characters removed."""
    return {
        "task": task.id,
        "entries": [entry_document(entry) for entry in found.entries],
        "next": found.next,
        "more": found.more,
    }


def entry_document(entry: Entry) -> dict[str, Any]:
    """Return an entry as JSON, with secrets masked and hidden characters removed."""
    agent = entry.agent
    return {
        "n": entry.number,
        "attempt": entry.attempt,
        "at": _iso_of(entry.at),
        "role": entry.role,
        "kind": entry.kind,
        "text": _without_begun_secret(shown(entry.text)) if entry.is_partial else shown(entry.text),
        "tool": None if entry.tool is None else one_line(entry.tool, _WIDE),
        "input": harmless_input(entry.given),
        "result": None if entry.result is None else shown(entry.result),
        "call": entry.call,
        "is_error": entry.is_error,
        "sub_agent": entry.is_sub_agent,
        "partial": entry.is_partial,
        "agent": agent and {key: None if each is None else one_line(str(each), _WIDE) for key, each in agent.items()},
    }


def _without_begun_secret(text: str) -> str:
    """Return an incomplete message without its end, if a secret may begin there.

    A secret can be masked only when it is complete.
    """
    while may_begin_secret(text):
        kept = text.rstrip()
        text = kept[: max(kept.rfind(blank) for blank in " \t\n") + 1]
    return text


def _iso_of(at: float | None) -> str | None:
    return None if at is None else iso(from_micros(round(at * 1_000_000)))


def harmless_input(given: object) -> Any:
    """Return the input of a tool, with secrets masked and hidden characters removed.

    A key and its value are searched together, because the key may show that the value is a secret. If the masked text
    is not valid JSON any more, it is returned as a string.
    """
    if given is None:
        return None
    try:
        masked = shown(to_json(_with_shown_texts(given)))
    except RecursionError:
        return "[too deep to be shown]"
    try:
        return from_json(masked)
    except (ValueError, RecursionError):
        return masked


def _with_shown_texts(value: object, levels: int = _MOST_LEVELS) -> object:
    """Return a JSON value, with secrets masked in each of its strings.

    Raises `RecursionError` if the value has too many nested levels.
    """
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, (dict, list)) and levels == 0:
        raise RecursionError
    if isinstance(value, dict):
        return {shown(str(key)): _with_shown_texts(each, levels - 1) for key, each in value.items()}
    return [_with_shown_texts(each, levels - 1) for each in value] if isinstance(value, list) else value


def entry_lines(entry: dict[str, Any]) -> list[str]:
    """Return an entry, given as JSON, as lines of text for a person or a model.

    All lines except the first are indented, so that no output of a model or a tool looks like another entry.
    """
    head = f"#{entry['n']} {entry['role']}"
    head += " (sub-agent)" if entry["sub_agent"] else ""
    head += f" {entry['at']}" if entry["at"] else ""
    if entry["kind"] not in ("text", "prompt", "begin", "end", "tool_call", "tool_result"):
        head += f", {entry['kind']}"
    if entry["kind"] == "tool_call":
        head += f": {entry['tool']} {to_json(entry['input'])}"
    elif entry["kind"] == "tool_result":
        call = "" if entry["call"] is None else f" (of #{entry['call']})"
        head += f": {entry['tool'] or '?'}{call}{' failed' if entry['is_error'] else ''}"
    text = (entry["text"] if entry["result"] is None else entry["result"]).strip("\n")
    lines = [f"  {line}" for line in text.split("\n")] if text else []
    return [head, *lines, *(["  ..."] if entry["partial"] else [])]

"""The recorded output of the real clients, and functions that read it in tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from outlive.agents.find_adapter import new_adapter
from outlive.agents.stream import StreamReader
from outlive.domain.agents.request import AgentRequest, AgentStart, Candidate

if TYPE_CHECKING:
    from outlive.agents.stream_event import Event

STREAMS = Path(__file__).with_name("streams")
MODELS = {"claude": "scripted", "codex": "scripted", "gemini": "gemini-2.5-pro", "opencode": "scripted/scripted"}


def stream(client: str, case: str) -> bytes:
    """Return what a client printed in a recorded case."""
    return (STREAMS / client / f"{case}.jsonl").read_bytes()


def names() -> list[tuple[str, str]]:
    """Return the client and the case of each recorded output."""
    return [(path.parent.name, path.stem) for path in sorted(STREAMS.glob("*/*.jsonl"))]


def new_reader(client: str, events: list[Event] | None = None, *, is_resumed: bool = False) -> StreamReader:
    """Return an object that reads the output of one attempt of a client, and keeps the events."""
    start = AgentStart(client=client, model=MODELS.get(client), is_resumed=is_resumed)
    request = AgentRequest(candidates=(Candidate(client=client, model=MODELS.get(client)),))
    return StreamReader(new_adapter(client), request, start, (lambda _: None) if events is None else events.append)


def read(client: str, printed: bytes, events: list[Event] | None = None) -> StreamReader:
    """Return such an object after it has read a whole output."""
    reader = new_reader(client, events)
    reader.feed(printed)
    reader.finish()
    return reader

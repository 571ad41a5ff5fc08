"""The tool `transcript`: what an agent, its user and its tools have written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from outlive.domain.notices.notice_text import cut_bytes
from outlive.domain.text.sanitize import to_json
from outlive.mcp.answer import Answer, framed
from outlive.mcp.tools.tool import Arguments, Call, Id, Tool
from outlive.mcp.tools.visible_tasks import own_task
from outlive.service.agents.transcript import entry_document, entry_lines, read_transcript, transcript_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive.agents.transcript_entries import Entry

_MOST = 64 << 10


class Transcript(Arguments):
    """The arguments of `transcript`."""

    id: Id
    since: Annotated[int | None, Field(ge=0, description="return only the entries after this number")] = None
    last: Annotated[int | None, Field(ge=0, description="return only the last N entries")] = None
    tools: Annotated[bool, Field(description="also return tool calls, results, thinking, errors and sub-agents")] = (
        False
    )
    bytes: Annotated[int, Field(ge=256, le=_MOST, description="return at most this many bytes")] = 16 << 10


def transcript(call: Call, given: Transcript) -> Answer:
    """Return as many of the requested entries of the transcript as fit into the reply.

    With `since` and without `last`, these are the first entries after the number `since`. Otherwise, these are the last
    entries.
    """
    task = own_task(call, given.id)
    found = read_transcript(call.home, task, since=given.since or 0, last=given.last, with_tools=given.tools)
    document = transcript_document(task, found.but(entries=()))
    is_onwards = given.since is not None and given.last is None
    document["entries"], is_cut = fit(found.entries, given.bytes, from_first=is_onwards)
    document["more"] = document["more"] or is_cut
    if is_cut and is_onwards:
        document["next"] = max(entry["n"] for entry in document["entries"])
    lines = [line for entry in document["entries"] for line in entry_lines(entry)]
    more = (" More follow." if is_onwards else " Earlier ones are left out.") if document["more"] else ""
    head = f"Transcript of {task.id} ({task.state}): {len(document['entries'])} entries.{more} next={document['next']}."
    return Answer(text=framed(head, lines), document=document)


def fit(entries: Sequence[Entry], room: int, *, from_first: bool) -> tuple[list[dict[str, Any]], bool]:
    """Return the JSON of as many entries as fit, and whether some did not fit.

    With `from_first`, these are the first entries, so that a reader can continue after the last of them. Otherwise,
    these are the last entries. If not even one entry fits, its text is cut.

    Only the returned entries are converted to JSON. The conversion masks secrets, and for all entries of a very long
    transcript this would take half a minute.
    """
    candidates = sorted(entries, key=lambda entry: entry.number) if from_first else entries[::-1]
    taken: dict[int, dict[str, Any]] = {}
    for entry in candidates:
        document = entry_document(entry)
        size = _size(document)
        if size > room and taken:
            break
        taken[entry.number] = document if size <= room else _cut(document, room)
        room -= size
    return [taken[entry.number] for entry in entries if entry.number in taken], len(taken) < len(entries)


def _size(entry: dict[str, Any]) -> int:
    return sum(len(line.encode("utf-8", "replace")) + 1 for line in entry_lines(entry))


def _cut(entry: dict[str, Any], room: int) -> dict[str, Any]:
    """Return an entry whose texts have at most a number of bytes."""
    given = entry["input"]
    if given is not None and len(to_json(given)) > room:
        given = cut_bytes(to_json(given), room)
    result = None if entry["result"] is None else cut_bytes(entry["result"], room)
    return {**entry, "text": cut_bytes(entry["text"], room), "result": result, "input": given}


TOOL = Tool(
    name="transcript",
    title="Read an agent's transcript",
    description=(
        "Return what a background agent has said so far, whether it runs or has ended. With `tools`, also return what"
        " it did. To continue, give `next` of an answer as `since`."
    ),
    takes=Transcript,
    act=transcript,
)

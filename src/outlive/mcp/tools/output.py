"""The tool `output`: the output that a task has written so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from outlive.bundle.output import read_piece, size_of
from outlive.domain.text.sanitize import shown
from outlive.domain.text.units import show_size
from outlive.mcp.answer import Answer, framed
from outlive.mcp.tools.tool import Arguments, Call, Id, Tool
from outlive.mcp.tools.visible_tasks import own_task
from outlive.service.tasks.output import files_with_output, output_document, pieces_of, start_of_tail

if TYPE_CHECKING:
    from outlive.bundle.attempt import AttemptFiles

_MOST = 64 << 10
_LINES = 200


class Output(Arguments):
    """The arguments of `output`."""

    id: Id
    tail: Annotated[int | None, Field(ge=0, description="return only the last N lines")] = None
    since: Annotated[int | None, Field(ge=0, description="return only the output after this offset")] = None
    bytes: Annotated[int, Field(ge=1, le=_MOST, description="return at most this many bytes")] = 16 << 10
    attempt: Annotated[
        int | None, Field(ge=1, description="return the output of this attempt; default: the newest")
    ] = None


def output(call: Call, given: Output) -> Answer:
    """Return the requested part of a task's output. Without a request, return the end."""
    task = own_task(call, given.id)
    files = files_with_output(call.home, task, given.attempt)
    start = _start(files, given)
    pieces = list(pieces_of(files, start, given.bytes))
    document = output_document(task, files, start, pieces)
    rest = int(str(document["bytes"])) - int(str(document["next"]))
    more = f" {show_size(rest)} follow: since={document['next']}." if rest > 0 else f" next={document['next']}."
    head = f"Output of {task.id} ({task.state}), from offset {document['start']}.{more}"
    if document["dropped_bytes"]:
        head += f" {show_size(int(str(document['dropped_bytes'])))} before it were dropped."
    lines = [f"| {line}" for line in shown(str(document["content"])).split("\n")]
    return Answer(text=framed(head, lines if document["content"] else []), document=document)


def _start(files: AttemptFiles, given: Output) -> int:
    """Return the offset of the first byte to return.

    This is the given offset, or the beginning of the last lines. They begin with a whole line.
    """
    if given.since is not None:
        return given.since
    start, latest = start_of_tail(files, _LINES if given.tail is None else given.tail), size_of(files) - given.bytes
    if start >= latest:
        return start
    # A line must not be cut: if a secret in it were cut, too, it would not be recognized.
    return latest + read_piece(files, latest, given.bytes).content.find(b"\n") + 1


TOOL = Tool(
    name="output",
    title="Read a task's output",
    description=(
        "Return what a task has written so far, whether it runs or has ended. `tail` returns its last lines. To "
        "continue, give `next` of an answer as `since`."
    ),
    takes=Output,
    act=output,
)

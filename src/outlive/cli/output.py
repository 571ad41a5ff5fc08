"""`outlive output`: what a task has written."""

from __future__ import annotations

import sys

from outlive.bundle.output import Piece
from outlive.cli import place
from outlive.cli.options import Command, Given, Option, whole_number
from outlive.cli.render import print_json
from outlive.domain.errors import UserError
from outlive.domain.quantity import parse_size, show_size
from outlive.domain.redaction import may_begin_secret
from outlive.domain.text import masked, shown
from outlive.keeper.launching import launch_adopter
from outlive.service.follow import CHUNK, follow
from outlive.service.output import files_with_output, output_document, pieces_of, start_of_tail, untorn
from outlive.service.view import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from outlive.bundle.attempt import AttemptFiles
    from outlive.domain.task import Task


def act(given: Given) -> int:
    """Print the output, or the part of it that was asked for."""
    if len(given.words) != 1:
        raise UserError("output takes one id", "outlive output ID")
    home = place.here()
    task = find(home, given.words, launch_adopter)[0]
    files = files_with_output(home, task, given.attempt)
    start = _start(files, given)
    if given.json and not given.follow:
        print_json(output_document(task, files, start, list(pieces_of(files, start, given.bytes))))
        return 0
    pieces = (
        follow(home, task, files, start, adopter=launch_adopter)
        if given.follow
        else pieces_of(files, start, given.bytes)
    )
    is_at_line = False
    for piece in pieces if given.raw else _whole_lines(pieces):
        is_whole = is_at_line and piece.content.endswith(b"\n")
        content = piece.content if given.raw or is_whole else untorn(files, piece.start, piece.end, piece.content)
        _print(task, piece, content, given)
        is_at_line = piece.content.endswith(b"\n") if piece.content else is_at_line
    return 0


def _start(files: AttemptFiles, given: Given) -> int:
    """Where to begin: at an offset, some lines before the end, or at the beginning."""
    if given.since is not None:
        return int(given.since)
    if given.tail is None:
        return 0
    return start_of_tail(files, given.tail)


def _whole_lines(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The same output in pieces that tear no secret: whole lines, and what is left when nothing more has come.

    What may be the beginning of a secret is held back until it is clear, but not without bound.
    """
    held: Piece | None = None
    for piece in pieces:
        if held is not None and (piece.restarted or piece.dropped_before):
            yield held
            held = None
        joined = piece if held is None else held.but(content=held.content + piece.content)
        if not piece.content and not piece.restarted:
            if held is not None and not may_begin_secret(held.content.decode("utf-8", "replace")):
                yield held
                held = None
            yield piece
            continue
        lines, newline, rest = joined.content.rpartition(b"\n")
        whole = lines + newline
        if may_begin_secret(whole.decode("utf-8", "replace")) or len(rest) > CHUNK:
            whole, rest = (joined.content, b"") if len(joined.content) > CHUNK else (b"", joined.content)
        if whole or joined.restarted or joined.dropped_before:
            yield joined.but(content=whole)
        held = Piece(start=joined.start + len(whole), content=rest) if rest else None
    if held is not None:
        yield held


def _print(task: Task, piece: Piece, content: bytes, given: Given) -> None:
    if given.json:
        if piece.content:
            print_json({"id": task.id, **_fields(piece, content)})
            sys.stdout.flush()
        return
    if piece.restarted:
        print("[the command truncated its own output: what it wrote before is gone]", file=sys.stderr, flush=True)
    if piece.dropped_before:
        sys.stdout.buffer.write(f"\n[{show_size(piece.dropped_before)} of output were dropped here]\n".encode())
    if given.raw:
        sys.stdout.buffer.write(content)
    elif sys.stdout.isatty():
        sys.stdout.write(shown(content.decode("utf-8", "replace")))
    else:
        # Nothing but secrets is changed: what is not text comes out byte for byte.
        text = masked(content.decode("utf-8", "surrogateescape"))
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
    sys.stdout.flush()


def _fields(piece: Piece, content: bytes) -> dict[str, object]:
    return {
        "start": piece.start,
        "next": piece.end,
        "dropped_bytes": piece.dropped_before,
        "content": masked(content.decode("utf-8", "replace")),
    }


COMMAND = Command(
    name="output",
    alias="logs",
    summary="what a task has written so far",
    usage="outlive output ID [options]",
    takes="task",
    details="Offsets are positions in the file and stay valid; `next` of one call is `--since` of the next.",
    options=(
        Option(name="--tail", metavar="N", help="only the last N lines", parse=whole_number),
        Option(name="--follow", help="go on until the task has ended"),
        Option(
            name="--since",
            metavar="OFFSET",
            help="only what stands after this offset",
            parse=whole_number,
        ),
        Option(name="--bytes", metavar="SIZE", help="at most so many bytes", parse=parse_size),
        Option(name="--attempt", metavar="N", help="of an earlier attempt", parse=whole_number),
        Option(name="--raw", help="byte for byte, with secrets and escape sequences"),
    ),
    examples=(("outlive output t7k2 --tail 20 --follow", "the last 20 lines, then whatever comes"),),
    act=act,
)

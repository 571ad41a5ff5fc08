"""`outlive output`: print the output of a task."""

from __future__ import annotations

import os
import sys

from outlive.bundle.output import Piece
from outlive.cli import context
from outlive.cli.formatting import print_json
from outlive.cli.parser import Command, Given, option, whole_number
from outlive.domain.text.redact import may_begin_secret
from outlive.domain.text.sanitize import masked, plain
from outlive.domain.text.units import parse_size, show_size
from outlive.keeper.spawn import launch_adopter
from outlive.linux.reader_gone import reader_of_output, watch_departures
from outlive.service.tasks.follow_output import CHUNK, follow
from outlive.service.tasks.launch_context import is_read_by_model
from outlive.service.tasks.output import files_with_output, output_document, pieces_of, start_of_tail, text_of, untorn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from outlive.bundle.attempt import AttemptFiles
    from outlive.domain.tasks.task import Task


def act(given: Given) -> int:
    """Print the output of a task, or the part of it that the options select."""
    home, task = context.one_task(given, "output")
    files = files_with_output(home, task, given.attempt)
    start = _start(files, given)
    if given.json and not given.follow:
        read = list(pieces_of(files, start, given.bytes))
        print_json(output_document(task, files, start, read, is_raw=given.raw))
        return 0
    if given.follow:
        departures = watch_departures(ends=(reader_of_output(),))
        pieces = follow(home, task, files, start, adopter=launch_adopter, departures=departures)
    else:
        pieces = pieces_of(files, start, given.bytes)
    is_at_line = False
    for piece in pieces if given.raw else _whole_lines(pieces):
        is_whole = is_at_line and piece.content.endswith(b"\n")
        content = piece.content if given.raw or is_whole else untorn(files, piece.start, piece.end, piece.content)
        _print(task, piece, content, given)
        is_at_line = piece.content.endswith(b"\n") if piece.content else is_at_line
    return 0


def _start(files: AttemptFiles, given: Given) -> int:
    """Return the offset in the output at which printing starts.

    The option `--since` or `--tail` determines it. Without these options, it is 0.
    """
    if given.since is not None:
        return int(given.since)
    if given.tail is None:
        return 0
    return start_of_tail(files, given.tail)


def _whole_lines(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield the output in whole lines, so that no secret is split into two pieces.

    If the end of a piece may be the beginning of a secret, the piece is joined with the output after it. A piece larger
    than `CHUNK` bytes is yielded at once.
    """
    held: Piece | None = None
    for piece in pieces:
        if held is not None and (piece.restarted or piece.dropped_before):
            yield held
            held = None
        joined = piece if held is None else held.but(content=held.content + piece.content)
        if not piece.content and not piece.restarted:
            if held is not None and not _may_begin_secret(held.content):
                yield held
                held = None
            yield piece
            continue
        lines, newline, rest = joined.content.rpartition(b"\n")
        whole = lines + newline
        if _may_begin_secret(whole) or len(rest) > CHUNK:
            whole, rest = (joined.content, b"") if len(joined.content) > CHUNK else (b"", joined.content)
        if whole or joined.restarted or joined.dropped_before:
            yield joined.but(content=whole)
        held = Piece(start=joined.start + len(whole), content=rest) if rest else None
    if held is not None:
        yield held


def _may_begin_secret(content: bytes) -> bool:
    """Return whether the end of some output may be the beginning of a secret.

    Escape sequences, such as colors, are removed before the check.
    """
    return may_begin_secret(plain(content.decode("utf-8", "replace")))


def _print(task: Task, piece: Piece, content: bytes, given: Given) -> None:
    """Print a piece of output, with secrets masked.

    On a terminal and for a model, escape sequences are removed as well. In a user's pipe or file (`| less -R`, `>
    file`), all other bytes stay unchanged.
    """
    if given.json:
        if piece.content:
            print_json({"id": task.id, **_fields(piece, content, is_raw=given.raw)})
            sys.stdout.flush()
        return
    if piece.restarted:
        print("[the command truncated its own output: the earlier output is lost]", file=sys.stderr, flush=True)
    if piece.dropped_before:
        sys.stdout.buffer.write(f"\n[{show_size(piece.dropped_before)} of output were dropped here]\n".encode())
    if given.raw:
        sys.stdout.buffer.write(content)
    elif sys.stdout.isatty() or is_read_by_model(os.environ):
        sys.stdout.write(text_of(content))
    else:
        text = masked(content.decode("utf-8", "surrogateescape"))
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
    sys.stdout.flush()


def _fields(piece: Piece, content: bytes, *, is_raw: bool) -> dict[str, object]:
    return {
        "start": piece.start,
        "next": piece.end,
        "dropped_bytes": piece.dropped_before,
        "content": text_of(content, is_raw=is_raw),
    }


COMMAND = Command(
    name="output",
    alias="logs",
    summary="print the output that a task has written so far",
    usage="outlive output ID [options]",
    takes="task",
    details=(
        "Secrets are masked. On a terminal, in JSON and inside an agent's session, escape sequences, invisible\n"
        "characters and the tags of agent clients are removed too. Outside of a session, output to a pipe or a file\n"
        "is otherwise unchanged. Offsets are positions in the output, and stay valid. To continue, give `next` of one\n"
        "call as `--since` of the next call."
    ),
    options=(
        option("--tail N", "print only the last N lines", whole_number),
        option("--follow", "print new output until the task has ended, or until the reader is gone"),
        option("--since OFFSET", "print only the output after this offset", whole_number),
        option("--bytes SIZE", "print at most this many bytes", parse_size),
        option("--attempt N", "print the output of attempt N (default: the newest attempt)", whole_number),
        option("--raw", "print every byte unchanged, with secrets and escape sequences"),
    ),
    examples=(("outlive output t7k2 --tail 20 --follow", "print the last 20 lines, and then new output as it comes"),),
)

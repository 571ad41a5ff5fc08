"""`outlive output`: what a task has written."""

from __future__ import annotations

import sys

from outlive.bundle.output import read_piece, size_of
from outlive.cli import place
from outlive.cli.options import Command, Given, Option, whole_number
from outlive.cli.render import print_json
from outlive.domain.errors import UserError
from outlive.domain.quantity import parse_size, show_size
from outlive.domain.redaction import redact
from outlive.domain.text import shown
from outlive.keeper.launching import launch_adopter
from outlive.service.follow import CHUNK, follow
from outlive.service.view import files_of, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from outlive.bundle.attempt import AttemptFiles
    from outlive.bundle.output import Piece
    from outlive.domain.task import Task


def act(given: Given) -> int:
    """Print the output, or the part of it that was asked for."""
    if len(given.words) != 1:
        raise UserError("output takes one id", "outlive output ID")
    home = place.here()
    task = find(home, given.words, launch_adopter)[0]
    files = files_of(home, task)
    start = _start(files, given)
    if given.json and not given.follow:
        _print_document(task, files, start, list(_pieces(files, start, given.bytes)))
        return 0
    pieces = (
        follow(home, task, files, start, adopter=launch_adopter) if given.follow else _pieces(files, start, given.bytes)
    )
    paper = _Paper(is_raw=given.raw)
    for piece in pieces:
        if given.json:
            _print_line(task, piece)
        else:
            paper.write(piece)
    paper.finish()
    return 0


def _start(files: AttemptFiles, given: Given) -> int:
    """Where to begin: at an offset, some lines before the end, or at the beginning."""
    if given.since is not None:
        return int(given.since)
    if given.tail is None:
        return 0
    at, lines, end = size_of(files), 0, size_of(files)
    while at > 0:
        step = min(at, CHUNK)
        piece = read_piece(files, at - step, step)
        for index in range(len(piece.content) - 1, -1, -1):
            if piece.content[index] == 10 and piece.start + index + 1 < end:
                lines += 1
                if lines == given.tail:
                    return piece.start + index + 1
        if piece.dropped_before:
            return piece.start  # the hole: nothing older is left
        at -= step
    return 0 if given.tail else end


def _pieces(files: AttemptFiles, start: int, limit: int | None) -> Iterator[Piece]:
    """The output as it is now, from `start` on, at most so many bytes of it."""
    end, left = size_of(files), limit
    while start < end and (left is None or left > 0):
        piece = read_piece(files, start, min(CHUNK, end - start, CHUNK if left is None else left))
        if not piece.content:
            return
        yield piece
        start = piece.end
        left = None if left is None else left - len(piece.content)


class _Paper:
    """What the output is written on: whole lines, so that no secret is torn; harmless on a terminal."""

    def __init__(self, *, is_raw: bool) -> None:
        self._is_raw = is_raw
        self._rest = b""

    def write(self, piece: Piece) -> None:
        """One more piece; an empty one means that nothing more has come yet."""
        if piece.restarted:
            self.finish()
            print("[the command truncated its own output: what it wrote before is gone]", file=sys.stderr, flush=True)
        if piece.dropped_before:
            self.finish()
            sys.stdout.buffer.write(f"\n[{show_size(piece.dropped_before)} of output were dropped here]\n".encode())
        if not piece.content:
            self.finish()
            return
        lines, newline, self._rest = (self._rest + piece.content).rpartition(b"\n")
        if len(self._rest) > CHUNK:
            lines, newline, self._rest = lines + newline + self._rest, b"", b""
        self._put(lines + newline)

    def finish(self) -> None:
        """Whatever is left of a line."""
        self._put(self._rest)
        self._rest = b""

    def _put(self, content: bytes) -> None:
        if self._is_raw:
            sys.stdout.buffer.write(content)
        elif sys.stdout.isatty():
            sys.stdout.write(shown(content.decode("utf-8", "replace")))
        else:
            # Nothing but secrets is changed: what is not text comes out byte for byte.
            masked = redact(content.decode("utf-8", "surrogateescape"))
            sys.stdout.buffer.write(masked.encode("utf-8", "surrogateescape"))
        sys.stdout.flush()


def _print_line(task: Task, piece: Piece) -> None:
    if piece.content:
        print_json({"id": task.id, **_fields(piece)})
        sys.stdout.flush()


def _fields(piece: Piece) -> dict[str, object]:
    return {
        "start": piece.start,
        "next": piece.end,
        "dropped_bytes": piece.dropped_before,
        "content": redact(piece.content.decode("utf-8", "replace")),
    }


def _print_document(task: Task, files: AttemptFiles, start: int, pieces: list[Piece]) -> None:
    print_json(
        {
            "id": task.id,
            "state": task.state,
            "start": pieces[0].start if pieces else start,
            "next": pieces[-1].end if pieces else min(start, size_of(files)),
            "bytes": size_of(files),
            "dropped_bytes": sum(piece.dropped_before for piece in pieces),
            "truncated": task.current.output_truncated,
            "content": redact(b"".join(piece.content for piece in pieces).decode("utf-8", "replace")),
        }
    )


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
        Option(name="--raw", help="byte for byte, with secrets and escape sequences"),
    ),
    examples=(("outlive output t7k2 --tail 20 --follow", "the last 20 lines, then whatever comes"),),
    act=act,
)

"""Reading an output as it is now: from an offset on, or its last lines, for every surface."""

from __future__ import annotations

import os
from itertools import pairwise

from outlive.bundle.output import Piece, read_piece, size_of
from outlive.domain.errors import Unavailable, UserError
from outlive.domain.redaction import MASK
from outlive.domain.text import masked, plain, shown
from outlive.service.follow import CHUNK
from outlive.service.view import MARGIN, files_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from outlive.bundle.attempt import AttemptFiles
    from outlive.bundle.home import Home
    from outlive.domain.task import Task

# Words that are tried as the beginning or the end of a torn secret; the longest, a private key, has one a line.
_MOST_CUTS = 100


def files_of_attempt(home: Home, task: Task, attempt: int | None) -> AttemptFiles:
    """The files of an attempt that was asked for, by default the newest."""
    if attempt is not None and not 0 < attempt <= len(task.attempts):
        raise UserError(f"task {task.id} has {len(task.attempts)} attempts", "outlive show tells them apart")
    return files_of(home, task, attempt)


def files_with_output(home: Home, task: Task, attempt: int | None) -> AttemptFiles:
    """The same, if its output is there to be read."""
    files = files_of_attempt(home, task, attempt)
    if not os.path.exists(files.output):
        # It is made before the row is: read as empty, it would tell that the command wrote nothing.
        raise Unavailable(
            f"the output of task {task.id} is gone: somebody has deleted its files",
            f"`outlive show {task.id}` tells what is on record",
        )
    return files


def start_of_tail(files: AttemptFiles, wanted: int) -> int:
    """The offset at which the last so many lines begin."""
    at, lines, end = size_of(files), 0, size_of(files)
    while at > 0:
        step = min(at, CHUNK)
        piece = read_piece(files, at - step, step)
        for index in range(len(piece.content) - 1, -1, -1):
            if piece.content[index] == 10 and piece.start + index + 1 < end:
                lines += 1
                if lines == wanted:
                    return piece.start + index + 1
        if piece.dropped_before:
            return piece.start  # the hole: nothing older is left
        at -= step
    return 0 if wanted else end


def pieces_of(files: AttemptFiles, start: int, limit: int | None) -> Iterator[Piece]:
    """The output as it is now, from `start` on, at most so many bytes of it."""
    end, left = size_of(files), limit
    while start < end and (left is None or left > 0):
        piece = read_piece(files, start, min(CHUNK, end - start, CHUNK if left is None else left))
        if not piece.content:
            return
        yield piece
        start = piece.end
        left = None if left is None else left - len(piece.content)


def untorn(files: AttemptFiles, start: int, end: int, content: bytes) -> bytes:
    """What stands between two offsets, with a mask for what it has of a secret that goes on beyond either of them.

    Whoever reads page by page would see both halves otherwise: neither of them looks like a secret.
    """
    skipped = min(_torn_at(files, start)[1] - start, len(content))
    left_off = min(end - _torn_at(files, end)[0], len(content) - skipped)
    mask = MASK.encode()
    return (
        (mask if skipped else b"")
        + content[skipped : len(content) - left_off]
        + (mask if left_off and skipped < len(content) else b"")
    )


def _torn_at(files: AttemptFiles, offset: int) -> tuple[int, int]:
    """From where to where a secret stands that a cut at the offset would tear; twice the offset if there is none."""
    before = read_piece(files, max(0, offset - MARGIN), min(offset, MARGIN))
    after = read_piece(files, offset, MARGIN)
    if not before.content or not after.content or before.end != offset or after.start != offset:
        return offset, offset
    text = before.content + after.content
    whole, at = _shown(text), len(before.content)
    if whole == plain(text.decode("utf-8", "replace")):
        return offset, offset

    def is_apart(cut: int) -> bool:
        return _shown(text[:cut]) + _shown(text[cut:]) == whole

    starts, ends = _words(text)
    backwards = [at, *reversed([each for each in starts if each < at])][:_MOST_CUTS]
    onwards = [at, *(each for each in ends if each > at)][:_MOST_CUTS]
    first = next(filter(is_apart, backwards), 0)
    last = next(filter(is_apart, onwards), len(text))
    return before.start + first, before.start + last


def _words(text: bytes) -> tuple[list[int], list[int]]:
    """Where words begin, and where they end."""
    blank = [-1, *(at for at, byte in enumerate(text) if byte in b" \t\r\n"), len(text)]
    words = [(left + 1, right) for left, right in pairwise(blank) if right > left + 1]
    return [left for left, _ in words], [right for _, right in words]


def _shown(content: bytes) -> str:
    return shown(content.decode("utf-8", "replace"))


def output_document(task: Task, files: AttemptFiles, start: int, pieces: Sequence[Piece]) -> dict[str, object]:
    """What was read as JSON; `next` is where to go on."""
    content = b"".join(piece.content for piece in pieces)
    if pieces:
        content = untorn(files, pieces[0].start, pieces[-1].end, content)
    return {
        "id": task.id,
        "state": task.state,
        "start": pieces[0].start if pieces else start,
        "next": pieces[-1].end if pieces else min(start, size_of(files)),
        "bytes": size_of(files),
        "dropped_bytes": sum(piece.dropped_before for piece in pieces),
        "truncated": task.current.output_truncated,
        "content": masked(content.decode("utf-8", "replace")),
    }

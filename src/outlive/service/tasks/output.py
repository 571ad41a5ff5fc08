"""Reading the output that an attempt has written so far, or its last lines."""

from __future__ import annotations

import os
from itertools import pairwise

from outlive.bundle.output import Piece, read_piece, size_of
from outlive.domain.errors import Unavailable, UserError
from outlive.domain.text.redact import MASK
from outlive.domain.text.sanitize import plain, shown
from outlive.domain.text.wrapper_tags import without_wrapper_tags
from outlive.service.tasks.follow_output import CHUNK
from outlive.service.tasks.read import MARGIN, files_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from outlive.bundle.attempt import AttemptFiles
    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Task

# The largest number of words that are tried as the beginning or the end of a secret that a page boundary cuts. The
# longest secret, a private key, has one word per line.
_MOST_CUTS = 100


def files_of_attempt(home: Home, task: Task, attempt: int | None) -> AttemptFiles:
    """Return the files of an attempt, by default of the newest attempt.

    Raises `UserError` if there is no attempt with this number.
    """
    if attempt is not None and not 0 < attempt <= len(task.attempts):
        raise UserError(
            f"task {task.id} has {len(task.attempts)} attempt{'s' * (len(task.attempts) != 1)}",
            f"`outlive show {task.id}` lists them",
        )
    return files_of(home, task, attempt)


def files_with_output(home: Home, task: Task, attempt: int | None) -> AttemptFiles:
    """Return an attempt's files, or raise `Unavailable` if the output was deleted."""
    files = files_of_attempt(home, task, attempt)
    if not os.path.exists(files.output):
        # The output file is created before the task's row, so a missing file was deleted. An empty result would mean
        # that the command wrote nothing.
        raise Unavailable(
            f"the output of task {task.id} is gone: its files were deleted",
            f"`outlive show {task.id}` shows what the ledger has about the task",
        )
    return files


def start_of_tail(files: AttemptFiles, wanted: int) -> int:
    """Return the offset at which the last `wanted` lines begin."""
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
            return piece.start  # the output before this piece was dropped
        at -= step
    return 0 if wanted else end


def pieces_of(files: AttemptFiles, start: int, limit: int | None) -> Iterator[Piece]:
    """Yield the output written so far, in pieces, from the offset `start` on.

    All pieces together have at most `limit` bytes.
    """
    end, left = size_of(files), limit
    while start < end and (left is None or left > 0):
        piece = read_piece(files, start, min(CHUNK, end - start, CHUNK if left is None else left))
        if not piece.content:
            return
        yield piece
        start = piece.end
        left = None if left is None else left - len(piece.content)


def untorn(files: AttemptFiles, start: int, end: int, content: bytes) -> bytes:
    """Return the output between two offsets, with secrets masked that an offset cuts.

    Neither half of a cut secret is recognised as a secret. So a reader who reads page by page would see both halves.
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
    """Return the start and the end of the secret that contains an offset.

    If no secret contains the offset, both values are the offset itself.
    """
    before = read_piece(files, max(0, offset - MARGIN), min(offset, MARGIN))
    after = read_piece(files, offset, MARGIN)
    if not before.content or not after.content or before.end != offset or after.start != offset:
        return offset, offset
    text = before.content + after.content
    whole, at = text_of(text), len(before.content)
    if whole == without_wrapper_tags(plain(text.decode("utf-8", "replace"))):
        return offset, offset

    def is_apart(cut: int) -> bool:
        return text_of(text[:cut]) + text_of(text[cut:]) == whole

    starts, ends = _words(text)
    backwards = [at, *reversed([each for each in starts if each < at])][:_MOST_CUTS]
    onwards = [at, *(each for each in ends if each > at)][:_MOST_CUTS]
    first = next(filter(is_apart, backwards), 0)
    last = next(filter(is_apart, onwards), len(text))
    return before.start + first, before.start + last


def _words(text: bytes) -> tuple[list[int], list[int]]:
    """Return the offsets at which words begin, and the offsets at which they end."""
    blank = [-1, *(at for at, byte in enumerate(text) if byte in b" \t\r\n"), len(text)]
    words = [(left + 1, right) for left, right in pairwise(blank) if right > left + 1]
    return [left for left, _ in words], [right for _, right in words]


def text_of(content: bytes, *, is_raw: bool = False) -> str:
    """Return output as text that a model may read.

    With `is_raw`, the output is only decoded.
    """
    text = content.decode("utf-8", "replace")
    return text if is_raw else shown(text)


def output_document(
    task: Task, files: AttemptFiles, start: int, pieces: Sequence[Piece], *, is_raw: bool = False
) -> dict[str, object]:
    """Return the pieces as JSON.

    The field `next` is the offset at which the next call continues.
    """
    content = b"".join(piece.content for piece in pieces)
    if pieces and not is_raw:
        content = untorn(files, pieces[0].start, pieces[-1].end, content)
    return {
        "id": task.id,
        "state": task.state,
        "start": pieces[0].start if pieces else start,
        "next": pieces[-1].end if pieces else min(start, size_of(files)),
        "bytes": size_of(files),
        "dropped_bytes": sum(piece.dropped_before for piece in pieces),
        "truncated": task.current.output_truncated,
        "content": text_of(content, is_raw=is_raw),
    }
